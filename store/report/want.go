package report

import (
	"fmt"
	"io"
	"slices"

	"weir/generator/loadmodel"
)

// What came of a want.
const (
	WantHeld    = "held"
	WantFailed  = "failed"
	WantUnknown = "unknown" // there is no such figure of the calls
)

// Want is something that the load model of the calls' run wants of a scenario,
// and whether it holds. Of its two values that one is known which its figure is.
type Want struct {
	Scenario string `json:"scenario"`
	Want     string `json:"want"`
	Result   string `json:"result"`
	Value    Num    `json:"value_ms"`
	Share    Num    `json:"value_share"`

	Calls      int  `json:"n_calls"`    // that the value is of
	Unreliable bool `json:"unreliable"` // they are too few for such a percentile
}

// wanted reads what a stored load model wants, by its scenarios. A document that
// another version took and this one does not wants nothing.
func wanted(document []byte) map[string][]loadmodel.Want {
	m, err := loadmodel.Decode("", document)
	if err != nil {
		return nil
	}
	all := map[string][]loadmodel.Want{}
	for i := range m.Scenarios {
		all[m.Scenarios[i].ID] = m.Scenarios[i].Want
	}
	return all
}

// judge holds rows of scenarios against what the run's load model wants of them.
// Rows of anything else, and calls of several runs, are none of which a model
// speaks.
func (r *Report) judge() {
	r.Wants = []Want{}
	if len(r.Runs) != 1 || len(r.By) != 1 || r.By[0] != "scenario" {
		return
	}
	rows := map[string]*Row{}
	for i := range r.Rows {
		rows[r.Rows[i].Group[0]] = &r.Rows[i]
	}
	for _, scenario := range r.Runs[0].Scenarios {
		row := rows[scenario]
		if row == nil {
			row = &Row{}
		}
		for _, w := range r.Runs[0].wants[scenario] {
			r.Wants = append(r.Wants, row.judge(scenario, w))
		}
	}
}

func (row *Row) judge(scenario string, w loadmodel.Want) Want {
	judged := Want{Scenario: scenario, Want: w.String(), Result: WantUnknown}
	value := &judged.Value
	if w.Figure == loadmodel.ErrorRate {
		value, judged.Calls = &judged.Share, row.Calls
		if row.Share.Known {
			*value = N(float64(row.Calls-row.OK) / float64(row.Calls))
		}
	} else {
		of := row.figure(w.Figure)
		*value, judged.Calls = of.rank(w.Rank), of.N
		judged.Unreliable = value.Known && slices.Contains(of.Unreliable, w.Rank)
	}
	if value.Known {
		judged.Result = WantFailed
		if w.Holds(value.V) {
			judged.Result = WantHeld
		}
	}
	return judged
}

// figure is one of loadmodel.WantFigures. What the caller felt of TTFT is the
// proxy's to say, or else the generator's.
func (row *Row) figure(name string) *Percentiles {
	switch name {
	case "ttft":
		if row.TTFTFelt.N == 0 {
			return &row.TTFTService
		}
		return &row.TTFTFelt
	case "ttft felt":
		return &row.TTFTFelt
	case "ttft upstream":
		return &row.TTFTUpstream
	case "ttft response":
		return &row.TTFTResponse
	case "ttft service":
		return &row.TTFTService
	case "tpot":
		return &row.TPOT
	case "queued":
		return &row.Queued
	case "e2e":
		return &row.ToLastToken
	case "e2e done":
		return &row.ToDone
	}
	return &Percentiles{}
}

// rank is one of loadmodel.WantRanks.
func (p *Percentiles) rank(name string) Num {
	switch name {
	case "p50":
		return p.P50
	case "p90":
		return p.P90
	case "p95":
		return p.P95
	case "p99":
		return p.P99
	case "mean":
		return p.Mean
	case "max":
		return p.Max
	}
	return Num{}
}

// wants writes a line for each.
func (r *Report) wants(w io.Writer, s Style) {
	if len(r.Wants) > 0 {
		fmt.Fprintln(w)
	}
	for _, want := range r.Wants {
		value := ms(want.Value)
		if want.Share.Known {
			value = percent(want.Share)
		}
		if want.Unreliable {
			value += "* of " + count(want.Calls, "call")
		}
		line := plain(want.Scenario) + ": " + want.Want
		switch want.Result {
		case WantHeld:
			line = s.paint(green, "✓ "+line+": "+value)
		case WantFailed:
			line = s.paint(red, "✗ "+line+": "+value)
		default:
			line = s.paint(yellow, "! "+line+": not measured")
		}
		fmt.Fprintln(w, line)
	}
}
