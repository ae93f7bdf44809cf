package client

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// talker is one real conversation, which goes on by itself.
type talker struct {
	client, caller, opening string
	says                    strings.Builder
	answer                  string // of the last call
	calls, turn             int
	at                      time.Duration // of its next call
	sessions                []string
}

func (w *talker) next(r *rand.Rand) step {
	switch {
	case w.calls == 0:
		w.says.WriteString("user " + w.opening)
		w.turn = 1
	case r.IntN(2) == 0:
		fmt.Fprintf(&w.says, "\nthink %x\nassistant %s\ncall %x\nresult %x", r.Uint64(), w.answer, r.Uint64(), r.IntN(3))
	default:
		fmt.Fprintf(&w.says, "\nassistant %s\nuser go on", w.answer)
		w.turn++
	}
	w.calls++
	w.answer = fmt.Sprintf("%x", r.Uint64())
	// Reasoning is dropped when it pleases the client.
	says := w.says.String()
	if r.IntN(2) == 0 {
		var kept []string
		for _, line := range strings.Split(says, "\n") {
			if !strings.HasPrefix(line, "think ") {
				kept = append(kept, line)
			}
		}
		says = strings.Join(kept, "\n")
	}
	return step{client: w.client, caller: w.caller, says: fmt.Sprintf("system %d\n%s", r.IntN(3), says), at: w.at, answers: w.answer}
}

// Whatever order calls of many conversations come in, each conversation is one
// session, those that begin with the same words under the same name too: their
// answers tell them apart.
func TestInterleavedConversationsAreSeparated(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		var talkers []*talker
		for range 24 {
			talkers = append(talkers, &talker{
				client: []string{"openai-node", "ai-sdk"}[r.IntN(2)], caller: fmt.Sprint("caller ", r.IntN(3)),
				opening: fmt.Sprint("opening ", r.IntN(4)), at: time.Duration(r.IntN(1000)) * ms,
			})
		}
		tracker := new(Tracker)
		now := time.Duration(0)
		for range 300 {
			w := talkers[0]
			for _, other := range talkers {
				if other.at < w.at {
					w = other
				}
			}
			now = w.at
			s := w.next(r)
			p := tracker.Place(s.request())
			hears(&p, s.answers)
			tracker.Ended(p, "", now+ms, true)
			w.sessions = append(w.sessions, p.Session)
			w.at += time.Duration(2+r.IntN(2000)) * ms
			if p.Turn != w.turn || p.Retry {
				t.Fatalf("seed %d: turn %d, retry %v; want turn %d", seed, p.Turn, p.Retry, w.turn)
			}
		}
		owner := map[string]*talker{}
		for _, w := range talkers {
			for _, session := range w.sessions {
				if session != w.sessions[0] {
					t.Fatalf("seed %d: one conversation is in the sessions %s and %s", seed, w.sessions[0], session)
				}
				if other := owner[session]; other != nil && other != w {
					t.Fatalf("seed %d: two conversations are in session %s", seed, session)
				}
				owner[session] = w
			}
		}
	}
}

func TestTrackerIsSafeForConcurrentUse(t *testing.T) {
	tracker := &Tracker{MaxSessions: 20}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 2))
			w := &talker{client: "ai-sdk", caller: fmt.Sprint(i), opening: "hi"}
			var first string
			for range 100 {
				s := w.next(r)
				p := tracker.Place(s.request())
				hears(&p, s.answers)
				tracker.Ended(p, fmt.Sprint("r", i), w.at+ms, true)
				if first == "" {
					first = p.Session
				}
				if p.Session != first || p.Turn != w.turn {
					t.Errorf("caller %d: session %s turn %d, want %s %d", i, p.Session, p.Turn, first, w.turn)
					return
				}
				w.at += s1
			}
		})
	}
	all.Wait()
}
