package client

import (
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"weir/proxy/wire"
)

// named finds the session that a request names: itself, or by the response it
// goes on from. A cache key names none: programs share one among many.
func (t *Tracker) named(a *arrival) (s *session, from string) {
	if id := a.said.session; id != "" {
		return t.open(id, xxhash.Sum64String(id), 0, a.Arrived), a.said.from
	}
	if c := t.response(a); c != nil {
		return c.session, fromResponse
	}
	return nil, ""
}

// response finds the call whose response a request goes on from.
func (t *Tracker) response(a *arrival) *call {
	if !a.part() {
		return nil
	}
	return t.responses[mix(a.caller, xxhash.Sum64String(a.head.PreviousResponse))]
}

// ofSession is response within one session.
func (t *Tracker) ofSession(a *arrival, s *session) *call {
	if c := t.response(a); c != nil && c.session == s {
		return c
	}
	return nil
}

// recognise finds the session of a request that names none by what it says, or
// begins one. It is nil where the request says nothing, and for a side call of
// no known session.
func (t *Tracker) recognise(a *arrival, purpose string) *session {
	if a.talk.empty() {
		return nil
	}
	seed := a.seed(a.group, purpose)
	switch purpose {
	case Embeddings, Models, Other:
		return nil
	case Routing:
		return t.routed(a, mix(seed, a.talk.end()))
	case Main, Subagent:
	default:
		if c, _, _ := t.earlier(a.group, a, len(a.talk.ends), nil); c != nil {
			return c.session
		}
		return nil
	}
	key := mix(seed, a.talk.end())
	again := t.same(key, nil, a)
	if again != nil && again.retried(a.Arrived) {
		return again.session
	}
	// Where equal conversations run side by side, the one that waits for this
	// question has it, rather than the one that has asked it.
	before, _, alone := t.earlier(seed, a, len(a.talk.ends)-1, nil)
	if again != nil && (before == nil || before.continued) {
		return again.session
	}
	if before != nil {
		a.guessed = !alone
		return before.session
	}
	s := t.latest[a.group]
	if s != nil && (s.main.last == nil || s.main.compacted) && a.Arrived-s.used <= handOver {
		return s
	}
	return t.invent(key, a)
}

// routed finds the session of Gemini CLI's question which model shall answer.
// It comes before the talk, and later holds only the last few messages: then it
// belongs to the caller's latest conversation if it has what the user last
// asked there.
func (t *Tracker) routed(a *arrival, key uint64) *session {
	if c := t.calls[key]; c != nil && c.session.main.last == nil {
		return c.session
	}
	if !measure(a.Shape, a.head).history {
		return t.invent(key, a)
	}
	s := t.latest[a.group]
	for i := range a.Shape.Blocks {
		if b := &a.Shape.Blocks[i]; s != nil && speakerOf(b) == user && b.Hash == s.main.asked {
			return s
		}
	}
	return nil
}

// invent begins a conversation under a name of weir's own.
func (t *Tracker) invent(key uint64, a *arrival) *session {
	for {
		t.made++
		id := fmt.Sprintf("conv-%012x", mix(mix(key, uint64(a.Arrived)), t.made)>>16)
		if t.sessions[id] == nil {
			return t.open(id, a.group, a.group, a.Arrived)
		}
	}
}

// seed is that of the keys under which calls of a purpose are known again. Side
// calls are kept apart, or the talk would be taken for their continuation.
func (a *arrival) seed(seed uint64, purpose string) uint64 {
	if !talks(purpose) {
		seed = mix(seed, xxhash.Sum64String(purpose))
	}
	if a.part() {
		seed = mix(seed, xxhash.Sum64String(a.head.PreviousResponse))
	}
	return seed
}

// match finds the call of its session that a request goes on from or repeats.
func (t *Tracker) match(a *arrival, s *session, l *lane, purpose string) {
	if a.talk.empty() {
		a.before = t.ofSession(a, s)
		return
	}
	seed := a.seed(l.seed, purpose)
	a.key = mix(seed, a.talk.end())
	if c := t.same(a.key, s, a); c != nil {
		a.before, a.again, a.retry = c, true, c.retried(a.Arrived)
		return
	}
	if !talks(purpose) {
		return
	}
	// Where a socket broke, Codex sends everything again which it had sent in
	// parts.
	if c := l.last; c != nil && c.part != a.part() && c.tail == a.talk.tail && c.retried(a.Arrived) {
		a.before, a.again, a.retry = c, true, true
		return
	}
	if a.part() {
		a.before = t.ofSession(a, s)
		return
	}
	a.before, a.from, _ = t.earlier(seed, a, len(a.talk.ends)-1, s)
}

// retried says whether the same request, coming now, tries the call again.
func (c *call) retried(now time.Duration) bool {
	return c.state == failed && !c.continued && now-c.ended <= retryWithin
}

// same finds an earlier call with the same conversation: one that failed first,
// of the same tag if there is one. Where no session is given, calls that their
// session began with do not count unless they failed.
func (t *Tracker) same(key uint64, s *session, a *arrival) (found *call) {
	best := 0
	for c := t.calls[key]; c != nil; c = c.older {
		worth := 0
		switch {
		case s != nil && c.session != s:
			continue
		case c.retried(a.Arrived) && c.tag == a.tag:
			worth = 3
		case c.retried(a.Arrived):
			worth = 2
		case s != nil || !c.opening:
			worth = 1
		}
		if worth > best {
			best, found = worth, c
		}
	}
	return found
}

// earlier finds the call with the most of the first blocks of a conversation,
// of any session or of one, and how many blocks it has. Where several calls have
// the same, the worthiest is taken, then the latest; alone says that no other
// session has one as good.
func (t *Tracker) earlier(seed uint64, a *arrival, blocks int, s *session) (found *call, has int, alone bool) {
	for ; blocks > 0; blocks-- {
		best, calls := 0, 0
		var only *call
		for c := t.calls[mix(seed, a.talk.ends[blocks-1])]; c != nil; c = c.older {
			if s != nil && c.session != s {
				continue
			}
			only = c
			calls++
			worth := a.worth(c, blocks, s != nil)
			switch {
			case worth > best:
				best, found, alone = worth, c, true
			case worth == best && found != nil && c.session != found.session:
				alone = false
				if found.continued && !c.continued { // by a guess: the other one is left
					found = c
				}
			}
		}
		if found != nil {
			return found, blocks, alone
		}
		// Clients trim answers, and take the thinking out of them. Where nobody
		// else has begun so, it is the same conversation all the same.
		if calls == 1 && !only.continued && only.state == answered && only.tag == a.tag {
			return only, blocks, true
		}
	}
	return nil, 0, false
}

// worth says how well a call fits as the one that a conversation goes on from,
// whose first blocks are the call's. What counts most is whether its answer
// stands behind them; then whether both have the same tag; then whether the call
// has an answer that nobody went on from. It is 0 where the conversation goes on
// from another answer, unless it has an answer in common with the call, or the
// session is known by its name.
func (a *arrival) worth(c *call, blocks int, named bool) int {
	worth := 7
	switch same, known := c.said.Repeats(a.behind(blocks)); {
	case same:
		worth += 6
	case !known:
	case named || a.talk.spoken(blocks):
		worth -= 6
	default:
		return 0
	}
	if c.tag == a.tag {
		worth += 3
	}
	switch {
	case c.continued && !c.doubted:
	case c.state == answered:
		worth += 2
	default:
		worth++
	}
	return worth
}

// behind gives the assistant's blocks that stand behind a number of blocks of
// the conversation.
func (a *arrival) behind(blocks int) []wire.Block {
	end := blocks
	for end < len(a.talk.who) && a.talk.who[end] == assistant {
		end++
	}
	if end == blocks {
		return nil
	}
	return a.Shape.Blocks[a.talk.at[blocks] : a.talk.at[end-1]+1]
}
