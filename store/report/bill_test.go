package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
	"weir/store/call"
)

// errand is a command that ran from half a second to ten seconds after the
// process's anchor.
func errand() Errand {
	return Errand{
		Run: "7f3a", Command: "claude", Database: "w.db", Exit: 3,
		Started: (500 * millisecond).Time(), Ended: (10_000 * millisecond).Time(), Lost: N(0),
	}
}

// later moves a call.
func later(c *call.Call, by int) *call.Call {
	for _, at := range []*call.Instant{
		&c.Arrived, &c.Body, &c.Admitted, &c.Connected, &c.Sent, &c.Headers, &c.FirstByte.Received, &c.FirstByte.Delivered,
		&c.FirstEvent.Received, &c.FirstEvent.Delivered, &c.FirstToken.Received, &c.FirstToken.Delivered,
		&c.LastToken.Received, &c.LastToken.Delivered, &c.Done,
	} {
		if at.Reached() {
			*at += call.Instant(by) * millisecond
		}
	}
	return c
}

// session is a command's calls: two turns of a session, one with a title beside
// it, a subagent, a failure, and what generates nothing.
func session() iter.Seq2[*call.Call, error] {
	of := func(c *call.Call, purpose string, turn int) *call.Call {
		c.Session, c.Purpose, c.Turn = "s1", purpose, turn
		return c
	}
	title := of(later(seen("fix", 50), 10), "title", 1) // while the main call goes
	sub := of(later(seen("fix", 400), 1000), "subagent", 1)
	sub.Usage = wire.Usage{Input: wire.N(1_234_567), CacheRead: wire.N(1_000_000), CacheWrite: wire.N(4_000), Output: wire.N(2_001), Reasoning: wire.N(500)}
	silent := of(later(seen("fix", 100), 3000), "main", 2)
	silent.Usage, silent.UsageSource = wire.Usage{}, call.UsageMissing
	failed := of(later(failedCall("fix", call.RateLimited, 429, "slow down"), 2000), "main", 2)
	failed.Done = failed.Arrived + 20*millisecond
	models := later(seen("fix", 1), 0)
	models.Operation = wire.OpModels
	prewarm := of(later(seen("fix", 2), 0), call.PurposePrewarm, 0)
	return each(prewarm, of(seen("fix", 100), "main", 1), title, sub, failed, silent, models)
}

func TestABillAddsUpWhatACommandCost(t *testing.T) {
	b, err := BillFor(errand(), session())
	if err != nil {
		t.Fatal(err)
	}
	var text, document bytes.Buffer
	b.Text(&text, Style{})
	golden(t, "bill.txt", text.Bytes())
	if err := b.JSON(&document); err != nil {
		t.Fatal(err)
	}
	golden(t, "bill.json", document.Bytes())
	if lines := bytes.Count(text.Bytes(), []byte("\n")); lines > 10 {
		t.Errorf("%d lines", lines)
	}
}

func TestABillOfCallsThatSayLittleClaimsLittle(t *testing.T) {
	c := seen("untagged", 100)
	c.Usage, c.UsageSource = wire.Usage{}, call.UsageMissing
	b, err := BillFor(errand(), each(c))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	b.Text(&text, Style{})
	golden(t, "bill_little.txt", text.Bytes())
	for name, n := range map[string]Num{"main": b.Main, "side": b.Side, "turns": b.Turns, "sessions": b.Sessions, "input": b.Input, "output": b.Output, "cache": b.CacheReadShare} {
		if n.Known {
			t.Errorf("%s is %v, though nobody said", name, n.V)
		}
	}
}

func TestABillWithoutCallsIsItsHeadAlone(t *testing.T) {
	b, err := BillFor(errand(), each())
	if err != nil {
		t.Fatal(err)
	}
	var text, document bytes.Buffer
	b.Text(&text, Style{})
	if got, want := text.String(), "weir: claude ran 9.5s, exit 3, run 7f3a\n"; got != want || b.Seen() {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := b.JSON(&document); err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(document.Bytes(), &fields); err != nil {
		t.Fatal(err)
	}
	if fields["outside_ms"] != 9500.0 || fields["in_model_ms"] != 0.0 || fields["input_tokens"] != nil {
		t.Errorf("got %s", document.Bytes())
	}
}

func TestScenariosThatNobodyNamedAreMarked(t *testing.T) {
	guessed, both, named := seen("multi_turn_agent", 100), seen("short_chat", 100), seen("short_chat", 100)
	guessed.ScenarioFrom, both.ScenarioFrom, named.ScenarioFrom = "automatic", "automatic", "header"
	b, err := BillFor(errand(), each(guessed, both, named))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"multi_turn_agent"}, b.Automatic); diff != "" {
		t.Error(diff)
	}
	if got, want := b.scenariosText(), "multi_turn_agent (automatic), short_chat"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := scenarioText(guessed) + scenarioText(named); got != "multi_turn_agent (auto)short_chat" {
		t.Errorf("in a list: %s", got)
	}
}

func TestABillSaysOfWhatItIsNot(t *testing.T) {
	for _, row := range []struct {
		lost Num
		gone string
		want string
	}{
		{N(223), "", "  !       223 calls could not be recorded: all figures are of the rest\n"},
		{Num{}, "http://127.0.0.1:8484", "  !       the weir at http://127.0.0.1:8484 ended before the command did: what came later is in no figure\n"},
	} {
		for name, calls := range map[string]iter.Seq2[*call.Call, error]{"some": session(), "none": each()} {
			e := errand()
			e.Lost, e.Gone = row.lost, row.gone
			b, err := BillFor(e, calls)
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if b.Text(&text, Style{}); !bytes.Contains(text.Bytes(), []byte(row.want)) {
				t.Errorf("with %s recorded: got %s, want %s", name, text.Bytes(), row.want)
			}
			if !b.Partial || b.Lost != row.lost {
				t.Errorf("with %s recorded: partial %v, lost %v", name, b.Partial, b.Lost)
			}
		}
	}
}

func TestABillFailsWithItsCalls(t *testing.T) {
	want := errors.New("disk")
	if _, err := BillFor(errand(), func(yield func(*call.Call, error) bool) { yield(nil, want) }); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}

// The time covered is what counting each millisecond gives.
func TestTimeInTheModelIsCoveredOnce(t *testing.T) {
	zero := time.Unix(1_800_000_000, 0)
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	chance := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		within := span{at(20), at(80)}
		var spans []span
		busy := make([]bool, 100)
		for range chance.IntN(8) {
			from := chance.IntN(90)
			to := from + chance.IntN(10)
			spans = append(spans, span{at(from), at(to)})
			for ms := from; ms < to; ms++ {
				busy[ms] = true
			}
		}
		want := 0
		for _, b := range busy[20:80] {
			if b {
				want++
			}
		}
		shown := slices.Clone(spans)
		if got := covered(spans, within); got != time.Duration(want)*time.Millisecond {
			t.Fatalf("%v: covered %v, want %d ms", shown, got, want)
		}
	}
}

func TestThousandsStandApart(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if diff := cmp.Diff(want, grouped(N(n))); diff != "" {
			t.Error(diff)
		}
	}
}
