package loadmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"
)

// jsonRow is a line of Mooncake or Bailian.
type jsonRow struct {
	Timestamp *float64        `json:"timestamp"`
	Input     *int            `json:"input_length"`
	Output    *int            `json:"output_length"`
	HashIDs   []int64         `json:"hash_ids"`
	Session   json.RawMessage `json:"session_id"` // Mooncake: a text or a number
	Chat      *int64          `json:"chat_id"`    // Bailian, as the two below
	Parent    *int64          `json:"parent_chat_id"`
	Turn      int             `json:"turn"`
}

// whole says whether the row has what every row needs.
func (j *jsonRow) whole() bool {
	return j.Timestamp != nil && j.Input != nil && tokenCount(*j.Input) && j.Output != nil && tokenCount(*j.Output)
}

// decodeLine reads a line of JSON. The problem, if there is one, says what to do.
func decodeLine(text []byte, into any) (problem string) {
	err := json.Unmarshal(text, into)
	if err == nil {
		return ""
	}
	problem = err.Error()
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		problem = fmt.Sprintf("field %q is %s", wrong.Field, article(wrong.Value))
	}
	return problem + "; mend the row or take it out"
}

func (t *Trace) jsonRecords() iter.Seq2[record, error] {
	unit := time.Millisecond
	if t.Format == "bailian" {
		unit = time.Second
	}
	return func(yield func(record, error) bool) {
		talks := talks{countsHistory: t.probed.countsHistory(), histories: t.histories()}
		talks.roots.most, talks.states.most = t.keys, t.keys
		for l, err := range t.lines() {
			if err != nil {
				yield(record{}, err)
				return
			}
			var j jsonRow
			if problem := decodeLine(l.text, &j); problem != "" {
				yield(record{}, t.fault(l.number, problem))
				return
			}
			var at time.Duration
			ok := j.whole()
			if ok {
				at, ok = clock(*j.Timestamp, unit)
			}
			if !ok {
				yield(record{}, t.fault(l.number, "want timestamp, input_length and output_length, none of them negative; mend the row or take it out"))
				return
			}
			r := record{Row: Row{Input: *j.Input, Output: *j.Output, HashIDs: j.HashIDs}, at: at}
			talks.place(&r, &j)
			if !yield(r, nil) {
				return
			}
		}
	}
}
