package call

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

func TestTimelineGivesBackWhatCame(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var line Timeline
	var want []Arrival
	after := time.Duration(0)
	for range 1000 {
		us := rng.Int64N(1 << rng.IntN(30))
		after += time.Duration(us) * time.Microsecond
		e := Arrival{after, wire.Kind(rng.IntN(16)), rng.IntN(1 << rng.IntN(24))}
		line = line.add(us, e.Output, e.Bytes)
		want = append(want, e)
	}
	if diff := cmp.Diff(want, slices.Collect(line.Events())); diff != "" {
		t.Error(diff)
	}
	if line.Len() != 1000 {
		t.Errorf("%d events, want 1000", line.Len())
	}
}

// A meter's timeline drifts from its instants by less than a microsecond,
// however many events came.
func TestTimelineDoesNotDrift(t *testing.T) {
	c, m := (&script{api: wire.Chat, request: wire.Head{Stream: true}}).start()
	m.Begin(200, sse, t0)
	at := t0
	for range 5000 {
		at += 20_000_700 // 20 ms and 0.7 µs
		m.Observe([]byte(data(chatHel)), at, at)
	}
	m.End(EndClean, nil, at)
	var last Arrival
	for e := range c.Timeline.Events() {
		last = e
	}
	if off := time.Duration(c.LastToken.Received-c.Arrived) - last.After; off < 0 || off >= time.Microsecond {
		t.Errorf("after 5000 events the timeline is off by %v", off)
	}
}

func TestTimelineIsBoundedAndGapsStayExact(t *testing.T) {
	const events = 120_000
	c, m := (&script{api: wire.Chat, request: wire.Head{Stream: true}}).start()
	m.Begin(200, sse, t0)
	one := []byte(data(chatHel))
	at := t0
	for range events {
		at += 2 * ms
		m.Observe(one, at, at)
	}
	at += 3000 * ms
	m.Observe(one, at, at)
	m.End(EndClean, nil, at)
	if len(c.Timeline) > timelineLimit || c.Timeline.Len() < 40_000 {
		t.Errorf("%v", c.Timeline)
	}
	want := Gaps{N: events, P50: 2 * time.Millisecond, P99: 2 * time.Millisecond, Longest: 3 * time.Second, Stalls: 1, Stalled: 3 * time.Second}
	if diff := cmp.Diff(want, c.Gaps); diff != "" {
		t.Error(diff)
	}
}

func FuzzTimeline(f *testing.F) {
	f.Add([]byte(Timeline(nil).add(20_000, wire.KindText, 200).add(0, 0, 12)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		line := Timeline(b)
		var again Timeline
		last := time.Duration(0)
		for e := range line.Events() {
			if e.After < last || e.Bytes < 0 || e.Output&^wire.Output != 0 {
				t.Fatalf("impossible event %+v after %v", e, last)
			}
			again = again.add(int64((e.After-last)/time.Microsecond), e.Output, e.Bytes)
			last = e.After
		}
		if got, want := slices.Collect(again.Events()), slices.Collect(line.Events()); len(again) < timelineLimit/2 && !slices.Equal(got, want) {
			t.Fatalf("read %v, written and read again %v", want, got)
		}
		_ = line.String()
	})
}
