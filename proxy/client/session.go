package client

import (
	"container/list"
	"time"

	"github.com/cespare/xxhash/v2"

	"weir/proxy/wire"
)

// session is what is remembered of one: hashes and numbers, no words.
type session struct {
	id        string
	seed      uint64 // of the hashes of its conversations
	caller    uint64 // whose conversation it is, with the cache key; 0 where the session was named
	used      time.Duration
	forgotten bool
	tools     bool // its talk has tools

	main   lane
	agents map[uint64]*lane
	calls  []*call // the latest ones, oldest first
}

// lane is the talk of one agent of a session.
type lane struct {
	seed  uint64
	used  time.Duration
	last  *call // of the talk
	open  int   // calls of the talk that have not ended
	ended time.Duration

	turn      int
	turnID    uint64 // the client's own id of that turn; 0 for none
	turns     int    // user messages in the last request that held all of them
	whole     bool   // a request has held the conversation from its beginning
	compacted bool   // the history has been made shorter since the last call of the talk
	asked     uint64 // the user's last block
}

// call is what is remembered of one call.
type call struct {
	session *session
	lane    *lane
	purpose string
	caller  uint64
	hash    uint64 // of its conversation; 0 for none
	tail    uint64 // of its last question
	tag     uint64 // what its request said it belongs to; 0: nothing
	part    bool   // it held only what was new
	turn    int
	turns   int // user messages in it

	reply *wire.Reply // its answer as it comes; nil where nobody needs to know it
	said  wire.Said   // once it has one

	state     state
	ended     time.Duration // unless it is running
	continued bool          // a later call goes on from it, or tries it again
	doubted   bool          // that was a guess among several
	opening   bool          // its session begins with it
	response  uint64        // the key of its response; 0 for none
	older     *call         // with the same hash
}

type state uint8

const (
	running state = iota
	answered
	failed
)

const (
	callsKept  = 64 // of a session
	agentsKept = 32 // of a session
	sameKept   = 16 // calls of one hash
)

// lane finds the talk of an agent; the main one has no id.
func (s *session) lane(agent string, now time.Duration) *lane {
	if agent == "" {
		s.main.used = now
		return &s.main
	}
	seed := mix(s.seed, xxhash.Sum64String(agent))
	l := s.agents[seed]
	if l == nil {
		if len(s.agents) >= agentsKept {
			var idlest *lane
			for _, l := range s.agents {
				if idlest == nil || l.used < idlest.used {
					idlest = l
				}
			}
			delete(s.agents, idlest.seed)
		}
		if s.agents == nil {
			s.agents = map[uint64]*lane{}
		}
		l = &lane{seed: seed}
		s.agents[seed] = l
	}
	l.used = now
	return l
}

// touch makes a session the most recently used one.
func (t *Tracker) touch(s *session, now time.Duration) {
	s.used = max(s.used, now)
	t.used.MoveToFront(t.sessions[s.id])
	if s.caller != 0 {
		t.latest[s.caller] = s
	}
}

// open makes a session, or gives the one of that id.
func (t *Tracker) open(id string, seed, caller uint64, now time.Duration) *session {
	if e := t.sessions[id]; e != nil {
		return e.Value.(*session)
	}
	if t.sessions == nil {
		t.sessions, t.calls = map[string]*list.Element{}, map[uint64]*call{}
		t.responses, t.latest = map[uint64]*call{}, map[uint64]*session{}
	}
	most := t.MaxSessions
	if most <= 0 {
		most = defaultSessions
	}
	for t.used.Len() >= most {
		t.forget(t.used.Back())
	}
	s := &session{id: id, seed: seed, caller: caller, used: now, main: lane{seed: seed}}
	t.sessions[id] = t.used.PushFront(s)
	return s
}

// forgetIdle forgets the sessions that nobody has used for long.
func (t *Tracker) forgetIdle(now time.Duration) {
	idle := t.Idle
	if idle <= 0 {
		idle = defaultIdle
	}
	for e := t.used.Back(); e != nil && now-e.Value.(*session).used > idle; e = t.used.Back() {
		t.forget(e)
	}
}

func (t *Tracker) forget(e *list.Element) {
	s := t.used.Remove(e).(*session)
	s.forgotten = true
	delete(t.sessions, s.id)
	if t.latest[s.caller] == s {
		delete(t.latest, s.caller)
	}
	for _, c := range s.calls {
		t.drop(c)
	}
}

// begin remembers a call that has been placed.
func (t *Tracker) begin(a *arrival, s *session, l *lane, p *Place) *call {
	c := &call{
		session: s, lane: l, purpose: p.Purpose, caller: a.caller, hash: a.key, tail: a.talk.tail, part: a.part(),
		tag: a.tag, turn: p.Turn, turns: a.head.TurnCount, opening: talks(p.Purpose) && l.last == nil,
	}
	// An answer that goes on from what the client began, or that is one of
	// several, is not repeated as it came.
	if p.From == fromConversation && talks(p.Purpose) && !a.talk.begun && a.head.Choices.N <= 1 {
		c.reply = new(wire.Reply)
	}
	if a.before != nil {
		a.before.continued, a.before.doubted = true, a.guessed
		c.opening = c.opening || a.retry && a.before.opening
	}
	if len(s.calls) == callsKept {
		t.drop(s.calls[0])
		copy(s.calls, s.calls[1:])
		s.calls = s.calls[:callsKept-1]
	}
	s.calls = append(s.calls, c)
	t.index(c)
	if talks(p.Purpose) {
		l.last = c
		l.open++
		s.tools = s.tools || measure(a.Shape, a.head).tools
	}
	return c
}

func (t *Tracker) index(c *call) {
	if c.hash == 0 {
		return
	}
	c.older = t.calls[c.hash]
	t.calls[c.hash] = c
	for kept := 1; c != nil; kept++ {
		if kept == sameKept {
			c.older = nil
		}
		c = c.older
	}
}

// drop takes a call out of all indexes.
func (t *Tracker) drop(c *call) {
	if t.responses[c.response] == c {
		delete(t.responses, c.response)
	}
	older := c.older
	c.older = nil // c may still be a lane's last call, or be ended
	head := t.calls[c.hash]
	switch {
	case head != c:
		for ; head != nil; head = head.older {
			if head.older == c {
				head.older = older
			}
		}
	case older == nil:
		delete(t.calls, c.hash)
	default:
		t.calls[c.hash] = older
	}
}
