package shaper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// newShaper makes a shaper with rules, whose holds end when the endpoint says.
func newShaper(t testing.TB, rules ...string) *Shaper {
	t.Helper()
	s := &Shaper{Random: func() float64 { return 0 }}
	var parsed []Rule
	for _, text := range rules {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, r)
	}
	if err := s.Configure(parsed); err != nil {
		t.Fatal(err)
	}
	return s
}

// admit has a call admitted, whatever it takes.
func admit(t testing.TB, s *Shaper, a Ask) *Permit {
	t.Helper()
	p, err := s.Admit(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// since is the time in a test's own words.
func since(start time.Time) time.Duration { return time.Since(start).Round(time.Millisecond) }

func TestZeroShaperAdmitsAll(t *testing.T) {
	var s Shaper
	for range 100 {
		p := admit(t, &s, Ask{Scenario: "rag"})
		if p.Account() != (Account{}) {
			t.Fatalf("account %+v of a call without a lane", p.Account())
		}
		p.Release(Settlement{})
	}
	if lanes := s.Lanes(); len(lanes) != 0 {
		t.Errorf("lanes %+v", lanes)
	}
}

// times lets n calls into a shaper, all at once, and gives the times at which
// they were admitted. Each ends after it has taken so long.
func times(t *testing.T, s *Shaper, n int, a Ask, takes time.Duration) []time.Duration {
	t.Helper()
	start := time.Now()
	got := make([]time.Duration, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			p, err := s.Admit(t.Context(), a)
			if err != nil {
				t.Errorf("call %d: %v", i, err)
				return
			}
			got[i] = since(start)
			time.Sleep(takes)
			p.Release(Settlement{Used: true})
		})
	}
	all.Wait()
	slices.Sort(got)
	return got
}

func TestRates(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		sentence string
		rule     string
		calls    int
		takes    time.Duration
		want     []time.Duration
	}{
		{"two a second → one each half second, and never two at once", "rps=2", 4, 0, []time.Duration{0, 500 * ms, 1000 * ms, 1500 * ms}},
		{"thirty a minute → one each two seconds", "rpm=30", 3, 0, []time.Duration{0, 2000 * ms, 4000 * ms}},
		{"a burst of three → three at once, then the rate", "rps=2 burst=3", 5, 0, []time.Duration{0, 0, 0, 500 * ms, 1000 * ms}},
		{"one in flight → the next goes when the stream has ended", "concurrency=1", 3, 700 * ms, []time.Duration{0, 700 * ms, 1400 * ms}},
		{"two in flight → they go in pairs", "concurrency=2", 4, 100 * ms, []time.Duration{0, 0, 100 * ms, 100 * ms}},
		{"a rate and a slot → the slower of both", "rps=10 concurrency=1", 3, 700 * ms, []time.Duration{0, 700 * ms, 1400 * ms}},
		{"a slot and a slower rate → the rate", "rps=1 concurrency=1", 3, 700 * ms, []time.Duration{0, 1000 * ms, 2000 * ms}},
		{"a thousand a second → late timers are made up for, and the tenth is not late", "rps=1000", 4, 0, []time.Duration{0, 1 * ms, 2 * ms, 3 * ms}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t, row.rule)
				if got := times(t, s, row.calls, Ask{}, row.takes); !slices.Equal(got, row.want) {
					t.Errorf("admitted at %v, want %v", got, row.want)
				}
			})
		})
	}
}

func TestAPauseSavesNothing(t *testing.T) {
	for _, rule := range []string{"rps=2", "rps=500"} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t, rule)
				interval := 500 * time.Millisecond
				if rule == "rps=500" {
					interval = 2 * time.Millisecond
				}
				admit(t, s, Ask{}).Release(Settlement{})
				time.Sleep(time.Hour)
				if got := times(t, s, 3, Ask{}, 0); !slices.Equal(got, []time.Duration{0, interval, 2 * interval}) {
					t.Errorf("after an idle hour admitted at %v", got)
				}
			})
		})
	}
}

func TestTheThirdWaiterLeavesAndThePermitGoesToTheFourth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "rps=1")
		start := time.Now()
		got := make([]time.Duration, 5)
		leave, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				ctx := t.Context()
				if i == 2 {
					ctx = leave
				}
				p, err := s.Admit(ctx, Ask{})
				if i == 2 {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("the third got %v", err)
					}
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				got[i] = since(start)
				p.Release(Settlement{})
			})
			synctest.Wait() // so that they stand in this order
		}
		time.Sleep(1900 * time.Millisecond) // 100 ms before it would have gone
		cancel()
		all.Wait()
		if want := []time.Duration{0, time.Second, 0, 2 * time.Second, 3 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("admitted at %v, want %v", got, want)
		}
	})
}

func TestKillingHalfTheQueueDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "rps=10 wait=1h")
		var all sync.WaitGroup
		start := time.Now()
		var mu sync.Mutex
		var got []time.Duration
		cancels := []context.CancelFunc{}
		for i := range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			if i%2 == 1 {
				cancels = append(cancels, cancel)
			} else {
				defer cancel()
			}
			all.Go(func() {
				if p, err := s.Admit(ctx, Ask{}); err == nil {
					mu.Lock()
					got = append(got, since(start))
					mu.Unlock()
					p.Release(Settlement{Used: true})
				}
			})
			synctest.Wait()
		}
		for _, cancel := range cancels {
			cancel()
		}
		all.Wait()
		slices.Sort(got)
		for i, at := range got {
			if want := time.Duration(i) * 100 * time.Millisecond; at != want {
				t.Fatalf("the %d. that stayed was admitted at %v, want %v", i+1, at, want)
			}
		}
		if len(got) != 100 {
			t.Errorf("%d were admitted, want the 100 that stayed", len(got))
		}
	})
}

func TestTokens(t *testing.T) {
	used := func(in, cached, out int64) Settlement {
		return Settlement{Used: true, InputTokens: Tokens{in, true}, CachedTokens: Tokens{cached, true}, OutputTokens: Tokens{out, true}}
	}
	for _, row := range []struct {
		sentence string
		rule     string
		ask      Ask
		first    Settlement
		second   time.Duration // when the second is admitted, the first having ended at once
	}{
		{"600 a minute and 20 used → their debt is paid in 2 s less the second's worth at the start, and one token more",
			"tpm=600", Ask{InputTokens: 10, OutputTokens: 10, CachedWeight: 1}, used(10, 0, 10), 1100 * time.Millisecond},
		{"what was reserved and not used is given back", "tpm=600", Ask{InputTokens: 10, OutputTokens: 900, CachedWeight: 1}, used(10, 0, 10), 1100 * time.Millisecond},
		{"what was used and not reserved is owed", "tpm=600", Ask{InputTokens: 1, OutputTokens: 1, CachedWeight: 1}, used(100, 0, 10), 10100 * time.Millisecond},
		{"a call that failed used nothing", "tpm=600", Ask{InputTokens: 500, OutputTokens: 900}, Settlement{}, 0},
		{"usage that is unknown is taken as it was reserved", "tpm=600", Ask{InputTokens: 10, OutputTokens: 10, CachedWeight: 1}, Settlement{Used: true}, 1100 * time.Millisecond},
		{"cached input counts nothing where the provider says so", "input_tpm=600", Ask{InputTokens: 100}, used(110, 100, 500), 100 * time.Millisecond},
		{"cached input counts in full where the provider says so", "input_tpm=600", Ask{InputTokens: 100, CachedWeight: 1}, used(110, 100, 500), 10100 * time.Millisecond},
		{"the rule's own weight comes first", "input_tpm=600 cached_weight=0.5", Ask{InputTokens: 100, CachedWeight: 1}, used(110, 100, 500), 5100 * time.Millisecond},
		{"output has a budget of its own", "output_tpm=600", Ask{InputTokens: 9000, OutputTokens: 5}, used(9000, 0, 20), 1100 * time.Millisecond},
		{"saved tokens carry a burst", "tpm=600 burst_tokens=1000", Ask{InputTokens: 500, CachedWeight: 1}, used(500, 0, 400), 0},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t, row.rule)
				start := time.Now()
				p := admit(t, s, row.ask)
				p.Release(row.first)
				p = admit(t, s, row.ask)
				if got := since(start); got != row.second {
					t.Errorf("the second was admitted after %v, want %v", got, row.second)
				}
				if limit := p.Account().Limit; (limit != "") != (row.second > 0) || strings.HasSuffix(limit, "flight") {
					t.Errorf("it waited for %q", limit)
				}
				p.Release(Settlement{})
			})
		})
	}
}

func TestSixtyThousandTokensAMinuteAreKeptOverFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget, minutes = 60_000, 5
		s := newShaper(t, fmt.Sprintf("tpm=%d wait=1h queue=10000", budget))
		ctx, stop := context.WithTimeout(t.Context(), minutes*time.Minute)
		defer stop()
		var mu sync.Mutex
		var sum int64
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				for k := range 10_000 {
					in, out := int64(200+(i*7919+k*104729)%4000), int64(50+(i*31+k*17)%900)
					p, err := s.Admit(ctx, Ask{Scenario: "a", InputTokens: in * 3 / 4, OutputTokens: 2 * out, CachedWeight: 1})
					if err != nil {
						return
					}
					mu.Lock()
					sum += in + out
					mu.Unlock()
					time.Sleep(time.Duration(out) * 10 * time.Millisecond)
					p.Release(Settlement{Used: true, InputTokens: Tokens{in, true}, CachedTokens: Tokens{0, true}, OutputTokens: Tokens{out, true}})
				}
			})
		}
		all.Wait()
		if off := float64(sum)/(budget*minutes) - 1; math.Abs(off) > 0.03 {
			t.Errorf("%d tokens in %d minutes: %.1f %% off the budget of %d a minute", sum, minutes, 100*off, budget)
		}
	})
}

// jain is Jain's index of fairness (Jain, Chiu, Hawe 1984): 1 when all have the
// same, 1/n when one has everything.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(len(shares)) * squares)
}

func TestOneGreedyAgentCannotStarveTheOthers(t *testing.T) {
	for _, rule := range []string{"rps=10 wait=1h", "concurrency=4 wait=1h", "tpm=60000 wait=1h"} {
		for _, by := range []string{"session", "scenario"} {
			t.Run(rule+", by "+by, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newShaper(t, rule)
					ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
					defer stop()
					got := make([]float64, 5)
					var mu sync.Mutex
					var all sync.WaitGroup
					for agent := range 5 {
						ask := Ask{Scenario: "a", Session: fmt.Sprint(agent), InputTokens: 1000, OutputTokens: 100, CachedWeight: 1}
						if by == "scenario" {
							ask.Scenario, ask.Session = fmt.Sprint(agent), ""
						}
						calls := 3
						if agent == 0 {
							calls = 100 // at a time
						}
						for range calls {
							all.Go(func() {
								for {
									p, err := s.Admit(ctx, ask)
									if err != nil {
										return
									}
									mu.Lock()
									got[agent]++
									mu.Unlock()
									time.Sleep(900 * time.Millisecond)
									p.Release(Settlement{Used: true})
								}
							})
						}
					}
					all.Wait()
					if index := jain(got); index < 0.95 {
						t.Errorf("Jain's index %.3f of %v", index, got)
					}
				})
			})
		}
	}
}
