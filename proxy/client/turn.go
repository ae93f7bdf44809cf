package client

import (
	"time"

	"github.com/cespare/xxhash/v2"

	"weir/proxy/wire"
)

// number gives a call its turn. An agent that another one started works for the
// turn of the session's user.
func (s *session) number(a *arrival, l *lane, purpose string) (turn int) {
	switch purpose {
	case Main, Subagent:
		turn = l.next(a)
		if purpose == Subagent && l != &s.main {
			turn = s.main.turn
		}
	case Routing: // before the call that begins the turn
		turn = s.main.turn + 1
	case Title: // of a session that may not have begun
		turn = max(s.main.turn, 1)
	case Prewarm:
		if !a.part() && !l.whole {
			l.whole, l.turn = true, min(a.talk.answered(), a.head.TurnCount)
		}
		turn = s.main.turn
	case Compaction:
		l.compacted = true
		turn = s.main.turn
	default:
		turn = s.main.turn
	}
	if a.Turn > 0 {
		return a.Turn
	}
	return turn
}

// next gives a call of the talk its turn, and keeps what the next one's follows
// from. Turns never go back, except to an earlier one that goes on.
func (l *lane) next(a *arrival) (turn int) {
	if a.part() {
		if !l.whole && a.Turn == 0 {
			return 0 // nobody saw how the session began
		}
	} else {
		l.whole = true
	}
	turn = l.turnOf(a)
	if a.Turn > 0 {
		turn = a.Turn
	}
	l.turn = max(l.turn, turn)
	l.turnID, l.asked, l.compacted = a.turnID(), a.talk.asked, false
	if !a.part() {
		l.turns = a.head.TurnCount
	}
	return turn
}

func (a *arrival) turnID() uint64 {
	if a.said.turn == "" {
		return 0
	}
	return xxhash.Sum64String(a.said.turn)
}

func (l *lane) turnOf(a *arrival) int {
	id := a.turnID()
	switch {
	case l.turn == 0:
		if a.part() {
			return 1
		}
		return max(1, a.asked(0, 0))
	case id != 0 && id == l.turnID:
		return l.turn
	case id != 0:
		return l.turn + 1
	case a.again:
		return a.before.turn
	case a.before != nil:
		before := a.before.turns
		if a.part() {
			before = 0
		}
		if n := a.asked(a.from, before); n > 0 {
			return max(l.turn+1, a.before.turn+n)
		}
		return a.before.turn
	case a.talk.empty():
		before := l.turns
		if a.part() {
			before = 0
		}
		if a.head.TurnCount > before {
			return l.turn + 1
		}
		return l.turn
	}
	// The history was made shorter, or rewritten. What stands there after a
	// compaction is the summary, or what the user had asked before it.
	if a.step == forUser && !l.compacted {
		return l.turn + 1
	}
	return l.turn
}

// asked counts what the user asked from a block on. A client may put texts of
// its own beside what the user wrote, as messages or as parts of them: it is no
// more than there are answers between, and no more than there are messages
// beyond those that stood there before.
func (a *arrival) asked(from, before int) int {
	messages := a.head.TurnCount - before
	if a.talk.empty() {
		return messages
	}
	n := a.talk.questions(from)
	if a.head.TurnCount == 0 { // not read
		return n
	}
	return min(n, messages)
}

// stepOf says what the agent goes on with: "user" for what the user wrote,
// "tools" for results of tools; empty where neither stands at the end.
func (l *lane) stepOf(a *arrival) string {
	users, tools := a.talk.last()
	if users && tools {
		// Claude Code puts reminders beside results, and in Codex the user may
		// speak while a turn is under way.
		switch id := a.turnID(); {
		case id != 0 && l.turnID != 0:
			users = id != l.turnID
		case a.before != nil && !a.again && !a.part():
			users = a.head.TurnCount > a.before.turns
		case a.API == wire.Messages || a.API == wire.Gemini: // results stand in messages of the user
			users = false
		default:
			users = a.talk.who[len(a.talk.who)-1] == user
		}
	}
	switch {
	case users:
		return forUser
	case tools:
		return forTools
	}
	return ""
}

// think gives the time from the end of the agent's call before to the arrival
// of this one, and who took it.
func (l *lane) think(a *arrival, purpose string) (d time.Duration, who string) {
	if !talks(purpose) || a.again || a.guessed || a.step == "" || l.last == nil || l.open > 0 || a.Arrived <= l.ended {
		return 0, ""
	}
	return a.Arrived - l.ended, a.step
}
