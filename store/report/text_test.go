package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/store"
)

// On every screen from 72 columns on nothing of a run is wider than it, and the
// count of calls stands beside their percentiles.
func TestARunFitsTheScreen(t *testing.T) {
	r := example(t)
	r.Runs[0].Verdict, r.Runs[0].Reasons = "invalid: client", []string{"the limit of 1 call in flight was reached: 12 requests waited for a place, which is a long reason"}
	r.Runs[0].Notes = []string{"self-check at 50 requests/s: sends were late by 1.49ms, and TTFTs off by 1.07ms, at p99 of 13: so much of the figures may be this machine's own"}
	for columns := 72; columns <= 160; columns++ {
		for _, colour := range []bool{false, true} {
			var b strings.Builder
			r.Text(&b, Style{Width: columns, Color: colour})
			text := coloured.ReplaceAllString(b.String(), "")
			for line := range strings.Lines(text) {
				if line = strings.TrimSuffix(line, "\n"); width.StringWidth(line) > columns {
					t.Errorf("%d columns: %q", columns, line)
				}
			}
			if n := strings.Count(text, " n  "); n != 2 {
				t.Errorf("%d columns: n stands in %d of 2 tables:\n%s", columns, n, text)
			}
			if joined := strings.Join(strings.Fields(text), " "); !strings.Contains(joined, r.Runs[0].Notes[0]) || !strings.Contains(joined, r.Runs[0].Reasons[0]) {
				t.Errorf("%d columns: words are lost:\n%s", columns, text)
			}
		}
	}
}

// A run one of whose shards was killed has no rate: that of the others is not its.
func TestARunThatHasNotEndedHasNoRate(t *testing.T) {
	for verdict, known := range map[string]bool{"valid": true, "": false} {
		run := RunOf(store.Run{ID: "7f3a", Verdict: verdict, PlannedRate: 5, SentRate: 4})
		if run.Planned.Known != known || run.Achieved.Known != known {
			t.Errorf("verdict %q: planned %+v, sent %+v", verdict, run.Planned, run.Achieved)
		}
	}
}

// A run of shards against several endpoints is headed by none of them alone.
func TestARunOfSeveralEndpointsNamesThem(t *testing.T) {
	for n, want := range map[int]string{
		1:  "run 7f3a  m → http://e0  seed 0  ✓ valid\n\n",
		3:  "run 7f3a  m → 3 endpoints  seed 0  ✓ valid\n  endpoints: http://e0, http://e1, http://e2\n\n",
		10: "run 7f3a  m → 10 endpoints  seed 0  ✓ valid\n  endpoints: http://e0, http://e1, http://e2, http://e3, http://e4,\n  http://e5, http://e6, http://e7 and 2 more: weir report --json\n\n",
	} {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("http://e%d", i))
		}
		run := RunOf(store.Run{ID: "7f3a", Name: "m", Target: strings.Join(all, ", "), Verdict: "valid"})
		var b strings.Builder
		run.text(&b, Style{Width: 72})
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%d endpoints (-want +got):\n%s", n, diff)
		}
	}
}
