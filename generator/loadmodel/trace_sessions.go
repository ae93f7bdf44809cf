package loadmodel

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// sessionBlock is how many tokens the blocks have that weir makes up for the
// sessions of traces without hash ids.
const sessionBlock = 64

// talks follow the sessions of Mooncake and Bailian through a trace.
type talks struct {
	countsHistory bool                   // Mooncake: lengths hold the history, against the format
	roots         recent[int64, int64]   // Bailian: of each chat, the session's first
	states        recent[string, talked] // Mooncake: by session id
	histories     histories
}

// idsAsKey is how many hash ids take the room of a key: of sessions with long
// prompts fewer are remembered.
const idsAsKey = 32

// talked is how far a session has come.
type talked struct {
	turns, tokens int
	ids           []int64 // of its prompt so far
}

// place says which session and turn a row is.
//
// Bailian's rows name the row they follow, and their lengths count the history.
// The session is called after its first row.
//
// Mooncake's rows with a session id count only what is new in their turn. The
// history is added here, so that Input is what the model reads.
func (t *talks) place(r *record, j *jsonRow) {
	switch {
	case j.Chat != nil:
		root := *j.Chat
		if j.Parent != nil && *j.Parent >= 0 {
			root = *j.Parent
			if first, ok := t.roots.get(root); ok {
				root = first
			}
		}
		t.roots.put(*j.Chat, root, 0)
		r.forgot = t.roots.forgot
		r.Session, r.Turn = strconv.FormatInt(root, 10), max(j.Turn, 1)
	case len(j.Session) > 0 && string(j.Session) != "null" && string(j.Session) != `""`:
		r.Session = strings.Trim(string(j.Session), `"`)
		state, _ := t.states.get(r.Session)
		state.turns++
		r.Turn, r.fresh = state.turns, max(r.Input, 1)
		if !t.countsHistory {
			r.Input = min(r.Input+state.tokens, math.MaxInt32)
			if len(r.HashIDs) > 0 { // those of the new text, too
				r.HashIDs = append(state.ids[:len(state.ids):len(state.ids)], r.HashIDs...)
			}
		}
		state.tokens, state.ids = min(r.Input+r.Output, math.MaxInt32), r.HashIDs
		t.states.put(r.Session, state, len(state.ids)/idsAsKey)
		r.forgot = t.states.forgot
	}
	if j.HashIDs == nil {
		t.histories.share(&r.Row)
		r.forgot = r.forgot || t.histories.states.forgot
	}
}

// histories make up, for sessions whose rows have no hash ids, what their
// prompts share: a prompt that has grown by at least the answer before it begins
// with the prompt before.
type histories struct {
	blockTokens int
	states      recent[string, history]
}

func (t *Trace) histories() histories {
	return histories{blockTokens: t.BlockTokens, states: recent[string, history]{most: t.keys}}
}

// mostBlocks is the most that weir makes up for a prompt: 4 million tokens,
// beyond which nothing is shared.
const mostBlocks = 1 << 16

// history is what a session's last row left behind.
type history struct {
	turns int
	held  int    // tokens of prompt and answer
	text  uint64 // whose blocks its prompts are made of
}

// place says which turn of its session a row is, and what it shares.
func (h *histories) place(r *record) {
	if r.Session == "" {
		return
	}
	state, _ := h.states.get(r.Session)
	r.Turn = state.turns + 1
	h.share(&r.Row)
	r.forgot = h.states.forgot
}

// share gives a row of a session its hash ids.
func (h *histories) share(r *Row) {
	if r.Session == "" {
		return
	}
	state, ok := h.states.get(r.Session)
	if !ok || r.Input < state.held { // a new text, which begins like no other
		state.text = xxhash.Sum64String(r.Session + " " + strconv.Itoa(state.turns))
	}
	state.turns++
	state.held = r.Input + r.Output
	h.states.put(r.Session, state, 0)
	r.HashIDs = make([]int64, min((r.Input+h.blockTokens-1)/h.blockTokens, mostBlocks))
	for i := range r.HashIDs {
		r.HashIDs[i] = int64(state.text>>1) + int64(i) //nolint:gosec // it fits: 63 bits, and a wrap would be no harm
	}
}

// recent remembers what was last put under a key, for the keys of late: at
// least the last most of them, and at most twice as many, or fewer where what is
// put is large. The zero recent is empty.
type recent[K comparable, V any] struct {
	most       int // 0: recentKeys
	young, old map[K]sized[V]
	size       int  // of young
	forgot     bool // something: what is not found may have been there
}

// sized is a value with how many keys it counts as, beside its own.
type sized[V any] struct {
	value V
	more  int
}

const recentKeys = 100_000

func (r *recent[K, V]) get(key K) (V, bool) {
	v, ok := r.young[key]
	if !ok {
		v, ok = r.old[key]
	}
	return v.value, ok
}

// put keeps a value, which counts as so many keys more.
func (r *recent[K, V]) put(key K, value V, more int) {
	before, there := r.young[key]
	if !there && r.size >= cmp.Or(r.most, recentKeys) {
		r.forgot = r.forgot || len(r.old) > 0
		clear(r.old) // its room is used again
		r.young, r.old, r.size = r.old, r.young, 0
	}
	if r.young == nil {
		r.young = map[K]sized[V]{}
	}
	if !there {
		r.size++
	}
	r.size += more - before.more
	r.young[key] = sized[V]{value, more}
}
