package loadmodel

import (
	"encoding/json"
	"iter"
	"math"
	"time"

	"weir/proxy/wire"
)

// OwnBlockTokens is how many tokens each hash id of weir's own rows stands for.
const OwnBlockTokens = 64

// ownRow is a line of weir's own form of a trace, which loses nothing of a Row.
type ownRow struct {
	At       *int64     `json:"at_ns"` // since the trace's beginning
	Input    int        `json:"input_tokens"`
	Output   int        `json:"output_tokens"`
	Model    string     `json:"model,omitempty"`
	Session  string     `json:"session,omitempty"`
	Turn     int        `json:"turn,omitempty"`
	HashIDs  []int64    `json:"hash_ids,omitempty"`
	Failed   bool       `json:"failed,omitempty"`
	Scenario string     `json:"scenario,omitempty"`
	API      wire.API   `json:"api,omitempty"`
	Whole    bool       `json:"whole,omitempty"`
	Then     []FollowUp `json:"then,omitempty"`
}

// AppendRow writes a row as one line of weir's own form of a trace, which
// OpenTrace reads. Hash ids stand for OwnBlockTokens each.
func AppendRow(dst []byte, r *Row) ([]byte, error) {
	at := int64(r.At)
	line, err := json.Marshal(ownRow{&at, r.Input, r.Output, r.Model, r.Session, r.Turn, r.HashIDs, r.Failed, r.Scenario, r.API, r.Whole, r.Then})
	if err != nil {
		return dst, err
	}
	return append(append(dst, line...), '\n'), nil
}

// sane says whether a row can be sent.
func (o *ownRow) sane() bool {
	ok := o.At != nil && *o.At >= 0 && *o.At < math.MaxInt64/2 && tokenCount(o.Input) && tokenCount(o.Output) && o.Turn >= 0
	for _, f := range o.Then {
		ok = ok && tokenCount(f.Input) && tokenCount(f.Output) && f.Think >= 0
	}
	return ok && (o.API == "" || wire.For(o.API) != nil)
}

func tokenCount(n int) bool { return n >= 0 && n <= math.MaxInt32 }

// ownRecords reads weir's own form.
func (t *Trace) ownRecords() iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		for l, err := range t.lines() {
			if err != nil {
				yield(record{}, err)
				return
			}
			var o ownRow
			if problem := decodeLine(l.text, &o); problem != "" {
				yield(record{}, t.fault(l.number, problem))
				return
			}
			if !o.sane() {
				yield(record{}, t.fault(l.number, "want at_ns, input_tokens and output_tokens, none of them negative, and an api that weir speaks; mend the row or take it out"))
				return
			}
			row := Row{0, o.Input, o.Output, o.Model, o.Session, o.Turn, o.HashIDs, o.Failed, o.Scenario, o.API, o.Whole, o.Then}
			if !yield(record{Row: row, at: time.Duration(*o.At)}, nil) {
				return
			}
		}
	}
}
