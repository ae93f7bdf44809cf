package client

import (
	"container/list"
	"net/http"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"weir/proxy/wire"
)

// Request is what a call tells of itself when its request has been read.
type Request struct {
	Client    string // by Identify
	API       wire.API
	Operation wire.Operation
	Header    http.Header // of a WebSocket's frame, by FrameHeader
	Head      *wire.Head  // nil where nothing could be read
	Shape     wire.Shape  // may be empty
	Prewarm   bool        // it asks for no answer

	// Caller tells apart who calls, beyond the client's name: a key's
	// fingerprint and an address, say. Equal conversations of two callers are
	// two conversations where nothing names a session.
	Caller string

	// Tag is what the request says it belongs to, a scenario, say; empty when
	// unsaid. It tells equal conversations apart where their answers do not.
	Tag string

	Arrived time.Duration // on any one monotonic clock

	// Session and Turn are what the request itself says in weir's headers; they
	// win. Empty and 0 when unsaid.
	Session string
	Turn    int
}

// Place is where a call belongs. Each field may be unknown, which is its zero
// value.
type Place struct {
	Session string
	From    string // how the session was found: "weir", "header", "body", "response", "conversation"
	Turn    int    // of the session's user, from 1
	Purpose string // Main, Subagent, or a side call; never empty
	Agent   string // the client's id of the agent that calls, where a session has several
	Parent  string // the agent, thread or session that started this one
	Retry   bool   // the same request as one that failed

	// Think is the time from the end of the same agent's call before to this
	// one's arrival, and ThinkFor who took it: "user" or "tools". Side calls,
	// retries, and calls that overlap have none.
	Think    time.Duration
	ThinkFor string

	call *call
}

// Reply takes down the call's answer, by which the session is known again: it
// is to be fed before the call is said to have ended. It is nil where the answer
// tells nothing.
func (p *Place) Reply() *wire.Reply {
	if p.call == nil {
		return nil
	}
	return p.call.reply
}

// The ways in which a session is found, in the order in which they are tried.
const (
	fromWeir         = "weir"
	fromHeader       = "header"
	fromBody         = "body"
	fromResponse     = "response"
	fromConversation = "conversation"
)

// Who took the time between two calls.
const (
	forUser  = "user"
	forTools = "tools"
)

// Tracker finds the session and the turn of each call. Its zero value is ready,
// and it is safe for concurrent use.
//
// A session is what the request or its client names; else that of the earlier
// response that the request goes on from; else that of an earlier call whose
// conversation this one continues: with all its messages, in order, whatever
// became of system prompt, tools and reasoning. The longest such call counts,
// so a branch stays in the session that it branches off. Of equal beginnings the
// one counts whose answer, which weir saw pass, is the one that the request
// repeats; then the one of the same tag. If several are left, the session is a
// guess, and the call has no think time. A conversation that continues none, or
// whose first answer is not the one that weir saw, gets a session of weir's own
// naming.
//
// A prompt's cache key is no session: many conversations may share one. It keeps
// them apart from those of other keys.
//
// The same conversation again is a retry if the call before failed not long
// ago. If it did not fail or has not ended, it is one more answer to the same
// question where a session is named or grew to it, and a new session where one
// began with it: many people say no more than "hi".
type Tracker struct {
	MaxSessions int           // that are remembered; 0: 4096. The least recently used goes first.
	Idle        time.Duration // after which a session is forgotten; 0: an hour

	mu        sync.Mutex
	sessions  map[string]*list.Element // of *session, by id
	used      list.List                // most recently used first
	calls     map[uint64]*call         // by hash; each leads to older ones of the same hash
	responses map[uint64]*call         // by caller and id of the response
	latest    map[uint64]*session      // of the conversations of a caller
	made      uint64                   // ids made so far
}

const (
	defaultSessions = 4096
	defaultIdle     = time.Hour
	retryWithin     = 10 * time.Minute // of the failure; the longest wait between attempts of a known agent is 3
	handOver        = time.Minute      // between a side call and the talk that it prepared
)

// arrival is a request that is being placed.
type arrival struct {
	*Request
	head   *wire.Head
	said   said
	caller uint64
	group  uint64 // of the caller and the cache key: conversations of two are two
	tag    uint64
	talk   talk

	key     uint64 // by which the call is known again; 0 where there is no conversation
	before  *call  // whose conversation or response this one goes on from, or whose request it repeats
	from    int    // the first block that is new since before
	again   bool   // the request of before, nothing new
	retry   bool   // and before failed
	guessed bool   // the session is one of several that fit as well
	step    string // what the agent goes on with: forUser, forTools or neither
}

// part says that the request holds only what is new since an earlier response.
func (a *arrival) part() bool { return a.head.PreviousResponse != "" }

// Place finds where a call belongs, when its request has been read. Each Place
// is given to Ended when its call has ended.
func (t *Tracker) Place(r *Request) Place {
	head := r.Head
	if head == nil {
		head = &wire.Head{}
	}
	a := &arrival{Request: r, head: head, said: listen(r, head), talk: read(r.Shape)}
	a.caller = mix(xxhash.Sum64String(r.Caller), xxhash.Sum64String(r.Client))
	a.group = a.caller
	if head.PromptCacheKey != "" {
		a.group = mix(a.caller, xxhash.Sum64String(head.PromptCacheKey))
	}
	if r.Tag != "" {
		a.tag = xxhash.Sum64String(r.Tag)
	}
	p := Place{Agent: a.said.agent, Parent: a.said.parent}

	t.mu.Lock()
	defer t.mu.Unlock()
	t.forgetIdle(r.Arrived)
	s, from := t.named(a)
	p.Purpose = purpose(r, head, &a.said, s != nil && s.tools)
	if s == nil {
		s, from = t.recognise(a, p.Purpose), fromConversation
	}
	if s == nil {
		return p
	}
	t.touch(s, r.Arrived)
	p.Session, p.From = s.id, from
	l := s.lane(a.said.agent, r.Arrived)
	t.match(a, s, l, p.Purpose)
	a.step = l.stepOf(a)
	p.Turn = s.number(a, l, p.Purpose)
	p.Retry = a.retry
	p.Think, p.ThinkFor = l.think(a, p.Purpose)
	p.call = t.begin(a, s, l, &p)
	return p
}

// Ended tells that a call has ended: the id of its response, empty where none
// came, when, and whether all went well. It is called once for each Place.
func (t *Tracker) Ended(p Place, responseID string, at time.Duration, ok bool) {
	c := p.call
	if c == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.state != running {
		return
	}
	c.state, c.ended = failed, at
	if ok {
		c.state = answered
		if c.reply != nil {
			c.said = c.reply.Said()
		}
	}
	c.reply = nil
	if talks(c.purpose) {
		c.lane.open--
		c.lane.ended = max(c.lane.ended, at)
	}
	if c.session.forgotten {
		return
	}
	t.touch(c.session, at)
	if responseID != "" {
		c.response = mix(c.caller, xxhash.Sum64String(responseID))
		t.responses[c.response] = c
	}
}
