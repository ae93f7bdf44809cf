package loadmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"
)

// jsonRow is a line of Mooncake or Bailian.
type jsonRow struct {
	Timestamp *float64        `json:"timestamp"`
	Input     *int            `json:"input_length"`
	Output    *int            `json:"output_length"`
	HashIDs   []int           `json:"hash_ids"`
	Session   json.RawMessage `json:"session_id"` // Mooncake: a text or a number
	Chat      *int64          `json:"chat_id"`    // Bailian, as the two below
	Parent    *int64          `json:"parent_chat_id"`
	Turn      int             `json:"turn"`
}

// whole says whether the row has what every row needs.
func (j *jsonRow) whole() bool {
	sane := func(n *int) bool { return n != nil && *n >= 0 && *n <= math.MaxInt32 }
	return j.Timestamp != nil && sane(j.Input) && sane(j.Output)
}

func (t *Trace) jsonRecords() iter.Seq2[record, error] {
	unit := time.Millisecond
	if t.Format == "bailian" {
		unit = time.Second
	}
	return func(yield func(record, error) bool) {
		var talks talks
		for l, err := range t.lines() {
			if err != nil {
				yield(record{}, err)
				return
			}
			var j jsonRow
			if err := json.Unmarshal(l.text, &j); err != nil {
				problem := err.Error()
				if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
					problem = fmt.Sprintf("field %q is %s", wrong.Field, article(wrong.Value))
				}
				yield(record{}, t.fault(l.number, problem+"; mend the row or take it out"))
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
			r := record{Row{Input: *j.Input, Output: *j.Output, HashIDs: j.HashIDs}, at}
			talks.place(&r.Row, &j)
			if !yield(r, nil) {
				return
			}
		}
	}
}

// talks follow sessions through a trace.
type talks struct {
	roots  recent[int64, int64]   // Bailian: of each chat, the session's first
	states recent[string, talked] // Mooncake: by session id
}

// talked is how far a session has come.
type talked struct{ turns, tokens int }

// place says which session and turn a row is.
//
// Bailian's rows name the row they follow, and their lengths count the history.
// The session is called after its first row.
//
// Mooncake's rows with a session id count only what is new in their turn. The
// history is added here, so that Input is what the model reads.
func (t *talks) place(r *Row, j *jsonRow) {
	switch {
	case j.Chat != nil:
		root := *j.Chat
		if j.Parent != nil && *j.Parent >= 0 {
			root = *j.Parent
			if first, ok := t.roots.get(root); ok {
				root = first
			}
		}
		t.roots.put(*j.Chat, root)
		r.Session, r.Turn = strconv.FormatInt(root, 10), max(j.Turn, 1)
	case len(j.Session) > 0 && string(j.Session) != "null" && string(j.Session) != `""`:
		r.Session = strings.Trim(string(j.Session), `"`)
		state, _ := t.states.get(r.Session)
		state.turns++
		r.Turn = state.turns
		r.Input = min(r.Input+state.tokens, math.MaxInt32)
		state.tokens = min(r.Input+r.Output, math.MaxInt32)
		t.states.put(r.Session, state)
	}
}

// recent remembers what was last put under a key, for the keys of late: at
// least the last 100,000 of them, and at most twice as many. The zero recent is
// empty.
type recent[K comparable, V any] struct{ young, old map[K]V }

const recentKeys = 100_000

func (r *recent[K, V]) get(key K) (V, bool) {
	v, ok := r.young[key]
	if !ok {
		v, ok = r.old[key]
	}
	return v, ok
}

func (r *recent[K, V]) put(key K, v V) {
	if r.young == nil || len(r.young) >= recentKeys {
		r.young, r.old = map[K]V{}, r.young
	}
	r.young[key] = v
}
