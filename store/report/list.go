package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"weir/store/call"
)

var listColumns = []string{"call", "started", "side", "scenario", "model", "outcome", "status", "ttft", "tpot", "in", "out", "total"}

// listCells are a call's cells under listColumns.
func listCells(c *call.Call) []string {
	felt, ok := c.TTFTFelt()
	tpot, tpotOK := c.TPOT()
	total, done := c.Duration()
	started := absent
	if c.Arrived.Reached() {
		started = c.Arrived.Time().Local().Format("01-02 15:04:05.000")
	}
	return []string{SpanText(c), started, string(c.Side), scenarioText(c), modelText(c), outcomeText(c), statusText(c.Outcome, c.Status),
		duration(felt, ok), duration(tpot, tpotOK), known(c.Usage.Input.N, c.Usage.Input.Known),
		known(c.Usage.Output.N, c.Usage.Output.Known), duration(total, done)}
}

// beside says whether something is recorded that asks for no answer, and yet
// would be taken for a call that does: a connection or a prewarm.
func beside(c *call.Call) bool {
	return c.Purpose == call.PurposeConnection || c.Purpose == call.PurposePrewarm
}

// outcomeText is a call's outcome with its symbol. What asks for no answer has
// its name there, for as long as nothing is wrong with it.
func outcomeText(c *call.Call) string {
	switch {
	case beside(c) && c.Outcome == call.OK:
		return "· " + c.Purpose
	case beside(c) && c.Outcome == "":
		return "… " + c.Purpose
	case c.Outcome == "":
		return "… in flight"
	case c.Outcome == call.OK:
		return "✓ ok"
	}
	return "✗ " + string(c.Outcome)
}

// modelText is the model that was asked for; a connection is asked for none.
func modelText(c *call.Call) string {
	if c.Purpose == call.PurposeConnection && c.Request.Model == "" {
		return "(connection)"
	}
	return named(c.Request.Model)
}

// paintOutcome colours what repeats an outcome.
func (s Style) paintOutcome(c *call.Call, text string) string {
	switch {
	case c.Outcome == call.OK && beside(c):
		return s.paint(faint, text)
	case c.Outcome == call.OK:
		return s.paint(green, text)
	case c.Outcome != "":
		return s.paint(red, text)
	}
	return text
}

// List writes calls as an aligned table.
func List(w io.Writer, calls []*call.Call, s Style) {
	t := &table{}
	for i, head := range listColumns {
		t.columns = append(t.columns, column{head: head, left: i < 6})
	}
	lanes := slices.ContainsFunc(calls, func(c *call.Call) bool { return c.Lane != "" })
	if lanes {
		t.columns = append(t.columns, column{head: "queued"}, column{head: "lane", left: true})
	}
	for _, c := range calls {
		cells := listCells(c)
		cells[3], cells[4] = clip(cells[3], 24), clip(cells[4], 28)
		if c.Worsened() {
			cells[3] += " " + impairedMark
		}
		if lanes {
			lane := laneCells(c)
			cells = append(cells, lane[0], clip(lane[1], 40))
		}
		t.add(cells...)
	}
	t.text(w, func(row, col int, cell string) string {
		switch {
		case row == -1 || cell == absent:
			return s.paint(faint, cell)
		case col == 5:
			return s.paintOutcome(calls[row], cell)
		}
		return cell
	})
}

// ListHead is the head of the lines that ListRow writes.
const ListHead = "call\tstarted_at\tside\tscenario\tmodel\toutcome\tstatus\tttft_felt_ms\ttpot_ms\tinput_tokens\toutput_tokens\ttotal_ms\tpurpose" + laneHead + "\timpaired"

// ListRow writes a call as one tab-separated line, for a pipe: absent figures
// are empty.
func ListRow(w io.Writer, c *call.Call) {
	started := ""
	if c.Arrived.Reached() {
		started = c.Arrived.Time().UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	fields := []string{SpanText(c), started, string(c.Side), plain(c.Scenario), plain(c.Request.Model),
		string(c.Outcome), positive(c.Status), field(msIf(c.TTFTFelt())), field(msIf(c.TPOT())),
		tokens(c.Usage.Input.N, c.Usage.Input.Known), tokens(c.Usage.Output.N, c.Usage.Output.Known), field(msIf(c.Duration())), plain(c.Purpose)}
	fmt.Fprintln(w, strings.Join(append(append(fields, laneFields(c)...), plain(strings.Join(c.Impaired, ", "))), "\t"))
}

func tokens(n int64, ok bool) string {
	if !ok {
		return ""
	}
	return fmt.Sprint(n)
}

// ListLine writes a call as one line of fixed columns, for a list that grows
// at its end; a narrow screen gets fewer of them.
func ListLine(w io.Writer, c *call.Call, s Style) {
	cells := listCells(c)
	pad := func(text string, columns int) string { return width.FillRight(clip(text, columns), columns) }
	outcome := s.paintOutcome(c, pad(cells[5], 14))
	started := cells[1][max(0, strings.LastIndexByte(cells[1], ' ')+1):] // the day is today
	wide := s.columns() >= 120
	if !wide {
		cells[0] = cells[0][:8] // the beginning of an id names a call
	}
	parts := []string{cells[0], started, pad(cells[2], 6), pad(cells[3], 16), outcome, "ttft " + width.FillLeft(cells[7], 7)}
	if wide {
		parts = append(parts, width.FillLeft(cells[9], 6)+"→"+width.FillRight(cells[10], 5), pad(cells[4], 20))
		if c.Lane != "" {
			lane := laneCells(c)
			parts = append(parts, "queued "+width.FillLeft(lane[0], 7), clip(lane[1], 32))
		}
	}
	if c.Worsened() {
		parts = append(parts, s.paint(yellow, impairedMark))
	}
	fmt.Fprintln(w, strings.TrimRight(strings.Join(parts, "  "), " "))
}

// scenarioText marks a class that nobody named.
func scenarioText(c *call.Call) string {
	if c.ScenarioFrom == automatic {
		return named(c.Scenario) + " (auto)"
	}
	return named(c.Scenario)
}
