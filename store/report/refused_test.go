package report

import (
	"testing"

	"weir/store/call"
)

// A 429 is no TTFT and no reason to forget the call: it has an outcome and
// columns of its own.
func TestACallThatWasRefusedWith429IsCountedAndIsInNoLatency(t *testing.T) {
	r := summary(t, Options{}, seen("chat", 400), failedCall("chat", call.RateLimited, 429, "slow down"))
	g := r.Total
	if g.Calls != 2 || g.TTFTFelt.N != 1 || len(r.Failures) != 1 || r.Failures[0].Outcome != call.RateLimited || r.Failures[0].Status != 429 || r.Failures[0].Calls != 1 {
		t.Errorf("%d calls, %d of them with a TTFT, failures %+v", g.Calls, g.TTFTFelt.N, r.Failures)
	}
}
