package shaper

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func parsed(t *testing.T, texts ...string) []Impairment {
	t.Helper()
	var all []Impairment
	for _, text := range texts {
		list, err := ParseImpairments(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, list...)
	}
	return all
}

func TestImpairmentsAreReadAsTheyAreWritten(t *testing.T) {
	for _, row := range []struct {
		text string
		want []string
	}{
		{"first_token+800ms", []string{"first_token+800ms"}},
		{"all: cut", []string{"cut@2"}},
		{"scenario=agent: first_token+800ms, cut:1%", []string{"scenario=agent: first_token+800ms", "scenario=agent: cut@2:1%"}},
		{"scenario=agent* model=llama3:8b: stall@3..40+2s..1m0s:0.5", []string{"scenario=agent* model=llama3:8b: stall@3..40+2s..1m:50%"}},
		{"first_token+lognormal(500ms,2s),pace=20/s", []string{"first_token+lognormal(500ms,2s)", "pace=20"}},
		{"reset, reset@7:0.05%", []string{"reset", "reset@7:0.05%"}},
		{"coalesce=8, coalesce+200ms, coalesce=3+1s", []string{"coalesce=8", "coalesce+200ms", "coalesce=3+1s"}},
		{"429, 429+30s, 500:10%, 529:100%", []string{"429+1s", "429+30s", "500:10%", "529"}},
		{"bandwidth=2048, pings=5, pings_throughout=0.5, no_usage, error@1, cut_rune@9", []string{"bandwidth=2048", "pings=5", "pings_throughout=0.5", "no_usage", "error@1", "cut_rune@9"}},
	} {
		var got []string
		for _, m := range parsed(t, row.text) {
			got = append(got, m.String())
			again := parsed(t, m.String())
			if diff := cmp.Diff([]Impairment{m}, again); diff != "" {
				t.Errorf("%s: %s is read as another: %s", row.text, m, diff)
			}
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s: %s", row.text, diff)
		}
	}
}

func TestWrongImpairmentsAreRefusedWithTheNextStep(t *testing.T) {
	for _, row := range []struct{ text, says string }{
		{"", "unknown kind \"\"; want one of first_token, pace"},
		{"slow+1s", "unknown kind \"slow\""},
		{"cut:1%,", "unknown kind \"\""},
		{"cut:101%", "cut:101%: share \"101%\": want 0% to 100%"},
		{"cut:NaN", "want 0% to 100%"},
		{"cut@0", "event \"0\" is neither like 7 nor like 3..40; want cut@K"},
		{"cut@5..3", "neither like 7"},
		{"cut+1s", "cut+1s: it takes no time; want cut@K"},
		{"first_token", "first_token: it lacks its time; want first_token+TIME"},
		{"first_token+2h", "at most an hour"},
		{"first_token+0s", "times above 0"},
		{"first_token+2s..1s", "that rise"},
		{"first_token+lognormal(2s,1s)", "greater 99th percentile"},
		{"first_token+lognormal(2s", "is none of 800ms"},
		{"first_token@3+1s", "it takes no event"},
		{"pace=0", "number \"0\" is not between"},
		{"pace=Inf", "is not between"},
		{"coalesce", "it lacks a number or a time"},
		{"coalesce=2.5", "is not between"},
		{"scenario=agent:cut", "want a colon and a space"},
		{"scenario=agent cut", "want a colon and a space"},
		{"scenario=a scenario=b: cut", "scenario stands twice"},
		{"scenario=each: cut", "each is for limits"},
		{"scenario=[: cut", "no name or pattern"},
		{"scenario=a colour=b: cut", "\"colour=b\": want NAME=VALUE before the colon"},
	} {
		_, err := ParseImpairments(row.text)
		if err == nil || !strings.Contains(err.Error(), row.says) || !strings.HasPrefix(err.Error(), fmt.Sprintf("impairment %q: ", row.text)) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", row.text, err, row.says)
		}
	}
}

func TestHelpNamesEveryKind(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(ImpairmentHelp()), "\n")
	if len(lines) != len(impairmentKinds) {
		t.Fatalf("%d lines for %d kinds", len(lines), len(impairmentKinds))
	}
	for i, k := range impairmentKinds {
		if !strings.HasPrefix(lines[i], string(k.kind)) {
			t.Errorf("line %q is not of %s", lines[i], k.kind)
		}
	}
}

// texts are what a call gets, as its span has it.
func texts(harms []Harm) []string {
	var all []string
	for _, h := range harms {
		all = append(all, h.String())
	}
	return all
}

func TestEqualSeedsPickTheSameCallsWhateverTheInterleaving(t *testing.T) {
	list := parsed(t, "cut@2..9:10%, first_token+100ms..2s:30%", "scenario=b: 529:50%")
	pick := func(p *Impairer, scenario string) []string { return texts(p.Pick(Ask{Scenario: scenario})) }

	alone := map[string][][]string{}
	for _, scenario := range []string{"a", "b"} {
		p := NewImpairer(list, 7)
		for range 500 {
			alone[scenario] = append(alone[scenario], pick(p, scenario))
		}
	}
	mixed, p := map[string][][]string{}, NewImpairer(list, 7)
	rng := rand.New(rand.NewPCG(1, 1))
	for len(mixed["a"]) < 500 || len(mixed["b"]) < 500 {
		scenario := []string{"a", "b"}[rng.IntN(2)]
		if len(mixed[scenario]) < 500 {
			mixed[scenario] = append(mixed[scenario], pick(p, scenario))
		}
	}
	if diff := cmp.Diff(alone, mixed); diff != "" {
		t.Error("interleaving changed what befalls the calls: " + diff)
	}
	other := NewImpairer(list, 8)
	var differs bool
	for _, want := range alone["a"] {
		differs = differs || !slices.Equal(want, pick(other, "a"))
	}
	if !differs {
		t.Error("another seed picked the same calls")
	}
}

func TestManyAtATimeGetTheSameSetOfHarms(t *testing.T) {
	list := parsed(t, "cut@2..9:10%, 429:10%")
	count := func(p *Impairer, workers int) map[string]int {
		var mu sync.Mutex
		var wg sync.WaitGroup
		seen := map[string]int{}
		for range workers {
			wg.Go(func() {
				for range 1000 / workers {
					text := strings.Join(texts(p.Pick(Ask{Scenario: "s"})), " ")
					mu.Lock()
					seen[text]++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		return seen
	}
	if diff := cmp.Diff(count(NewImpairer(list, 1), 1), count(NewImpairer(list, 1), 20)); diff != "" {
		t.Error(diff)
	}
}

func TestOneImpairmentDoesNotChangeAnother(t *testing.T) {
	cuts := func(texts ...string) (at []int) {
		p := NewImpairer(parsed(t, texts...), 3)
		for i := range 1000 {
			for _, h := range p.Pick(Ask{Scenario: "s"}) {
				if h.Kind == Cut {
					at = append(at, i)
				}
			}
		}
		return at
	}
	if diff := cmp.Diff(cuts("cut:5%"), cuts("500:20%, first_token+1s..2s, cut:5%")); diff != "" {
		t.Error(diff)
	}
}

// 10,000 draws: the share found lies within 4.5 standard deviations of the one
// wanted, which it fails to do in one of 150,000 seeds.
func TestSharesAreWhatWasAskedFor(t *testing.T) {
	const n = 10_000
	list := parsed(t, "429:1%, 500:10%, cut:50%, stall+1s:100%, error:0%, reset:0.2%")
	for _, scenario := range []string{"a", "agent", "长对话"} {
		got := map[ImpairmentKind]int{}
		both := 0
		p := NewImpairer(list, 1)
		for range n {
			harms := p.Pick(Ask{Scenario: scenario})
			for _, h := range harms {
				got[h.Kind]++
			}
			if hasKind(harms, ServerError) && hasKind(harms, Cut) {
				both++
			}
		}
		for _, m := range list {
			if off := math.Abs(float64(got[m.Kind]) - n*m.Share); off > 4.5*math.Sqrt(n*m.Share*(1-m.Share)) {
				t.Errorf("%s: %s befell %d of %d", scenario, m, got[m.Kind], n)
			}
		}
		if off := math.Abs(float64(both) - n*0.05); off > 4.5*math.Sqrt(n*0.05*0.95) {
			t.Errorf("%s: two impairments met in %d calls of %d, want about %d: they are not drawn by themselves", scenario, both, n, n/20)
		}
	}
}

func TestTimesAndEventsFollowTheirDistributions(t *testing.T) {
	const n = 10_000
	p := NewImpairer(parsed(t, "first_token+lognormal(500ms,2s), stall@3..40+200ms..2s, 429+7s"), 1)
	var tokens, stalls []time.Duration
	events := map[int]int{}
	for range n {
		for _, h := range p.Pick(Ask{}) {
			switch h.Kind {
			case SlowFirstToken:
				tokens = append(tokens, h.Time)
			case Stall:
				stalls = append(stalls, h.Time)
				events[h.Event]++
			case RateLimited:
				if h.Time != 7*time.Second {
					t.Fatalf("a constant of 7s gave %s", h.Time)
				}
			}
		}
	}
	slices.Sort(tokens)
	slices.Sort(stalls)
	below := func(list []time.Duration, d time.Duration) float64 {
		i, _ := slices.BinarySearch(list, d)
		return float64(i) / n
	}
	for _, row := range []struct {
		what      string
		got, want float64
	}{
		{"half the lognormal times lie below the median", below(tokens, 500*time.Millisecond), 0.5},
		{"99 % of them below the 99th percentile", below(tokens, 2*time.Second), 0.99},
		{"a quarter of the uniform times in their first quarter", below(stalls, 650*time.Millisecond), 0.25},
		{"none below the least", below(stalls, 200*time.Millisecond), 0},
		{"all up to the most", below(stalls, 2*time.Second+1), 1},
	} {
		if math.Abs(row.got-row.want) > 4.5*math.Sqrt(row.want*(1-row.want)/n)+0.001 {
			t.Errorf("%s: %.4f, want %.4f", row.what, row.got, row.want)
		}
	}
	for k := 3; k <= 40; k++ {
		if events[k] < 150 || events[k] > 400 { // 263 are expected
			t.Errorf("event %d was drawn %d times of %d", k, events[k], n)
		}
	}
	if len(events) != 38 {
		t.Errorf("%d events were drawn, want those from 3 to 40", len(events))
	}
}

func TestSelectorsSayWhoseCallsAreMeant(t *testing.T) {
	p := NewImpairer(parsed(t, "scenario=agent* model=gpt-*: cut", "upstream=local: stall+1s", "first_token+1s:0%, first_token+2s, first_token+3s"), 1)
	for _, row := range []struct {
		name string
		ask  Ask
		want []string
	}{
		{"fits the scenario and the model", Ask{Scenario: "agent-2", Model: "gpt-5"}, []string{"cut@2", "first_token+2s"}},
		{"fits only one of them", Ask{Scenario: "agent-2", Model: "claude"}, []string{"first_token+2s"}},
		{"fits the upstream", Ask{Upstream: "local"}, []string{"stall@2+1s", "first_token+2s"}},
	} {
		if diff := cmp.Diff(row.want, texts(p.Pick(row.ask))); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
	}
	narrow := NewImpairer(parsed(t, "scenario=agent model=gpt-*: cut"), 1)
	if !narrow.MayBefall(Ask{Scenario: "agent"}) || narrow.MayBefall(Ask{Scenario: "chat"}) {
		t.Error("a call may be befallen while only its scenario is known, and only by what speaks of that")
	}
}

func TestCallersWithEverNewScenariosUseNoMoreMemory(t *testing.T) {
	p := NewImpairer(parsed(t, "cut:50%"), 1)
	for i := range mostScenarios + 100 {
		p.Pick(Ask{Scenario: fmt.Sprint(i)})
	}
	if len(p.calls) > mostScenarios+1 {
		t.Errorf("%d scenarios are held", len(p.calls))
	}
}

func FuzzParseImpairments(f *testing.F) {
	f.Add("scenario=agent: first_token+800ms, cut:1%")
	f.Add("stall@3..40+lognormal(500ms,2s):0.5,coalesce=3+1s")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseImpairments(text)
		if err != nil {
			return
		}
		for _, m := range list {
			again, err := ParseImpairments(m.String())
			if err != nil || len(again) != 1 || again[0].String() != m.String() {
				t.Fatalf("%q gives %q, which is read as %v, %v", text, m, again, err)
			}
		}
	})
}
