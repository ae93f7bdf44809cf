package proxy

import (
	"testing"
	"time"
)

func TestAfterAHoldFewCallsAreSentInVainAndNoGoodputIsLost(t *testing.T) {
	const long = 2 * time.Minute
	gentle, _ := servedIn(t, "concurrency=9 retry=5 wait=1h", long) // one more than the endpoint takes
	served, refused := servedIn(t, "concurrency=24 retry=5 wait=1h", long)
	t.Logf("%d served, %d refused; with one too many in flight %d served", served, refused, gentle)
	if refused > served*2/3 || float64(served) < 0.95*float64(gentle) {
		t.Errorf("%d refused for %d served, want two thirds at most, and 95 %% of %d", refused, served, gentle)
	}
}
