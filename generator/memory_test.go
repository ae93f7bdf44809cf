package generator

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"weir/generator/loadmodel"
	"weir/proxy/wire"
)

// heapHeld is what is held now.
func heapHeld() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// An outlook holds no more of four times the sessions, in which each is new, as
// is each block, and each length another: what it remembers was full before. It
// says then which of its figures are bounds.
func TestAnOutlookHoldsNoMoreOfALongTrace(t *testing.T) {
	const keys, sessions = 2500, 8 * mostValues / 4
	f := &foresight{Outlook: &Outlook{}, plan: &Plan{Trace: &loadmodel.Trace{}, Model: &loadmodel.Model{}},
		scenarios: map[string]*gathered{}, unpriced: map[string]int{}, counters: map[string]int{}, models: map[string]bool{}}
	f.cache.blocks.most, f.begun.most = keys, keys
	f.scenario("t").written = mostSamples // none is to be written
	var after, atEnd uint64
	for i := range 4 * sessions {
		far := int64(i) << 20
		f.add(&Session{Index: i, ID: fmt.Sprint("s", i), Scenario: "t", API: wire.Chat, Due: time.Duration(i) * time.Second, Turns: []Turn{{Input: 1000 + i, Output: 1 + i}},
			Blocks: []int64{far, far + 1, far + 1<<10}, BlockTokens: 512})
		switch i + 1 {
		case sessions:
			after = heapHeld()
		case 4 * sessions:
			atEnd = heapHeld()
		}
	}
	if atEnd > after+after/10 {
		t.Errorf("%d bytes after %d sessions, %d after %d", after, sessions, atEnd, 4*sessions)
	}
	if !f.cache.forgot() || !f.begun.forgot {
		t.Error("it does not say that it forgot")
	}
	g := f.scenarios["t"].input.spread()
	if !g.About || g.Min != 1000 || g.Max != 999+4*sessions {
		t.Errorf("%+v", g)
	}
	for _, at := range []struct{ got, want int }{{g.P50, 1000 + 2*sessions}, {g.P95, 1000 + 4*sessions*95/100}, {g.P99, 1000 + 4*sessions*99/100}} {
		if at.got > at.want || at.want-at.got > at.want/4096+1 {
			t.Errorf("%+v: %d, want %d rounded down by one part in 4096 at most", g, at.got, at.want)
		}
	}
}

// blank is an endpoint without a network that answers after a while and keeps
// nothing.
type blank struct {
	sent atomic.Int64
	each func(n int64)
}

func (b *blank) RoundTrip(r *http.Request) (*http.Response, error) {
	b.each(b.sent.Add(1))
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	time.Sleep(2 * time.Second)
	w := wire.NewWriter(wire.For(wire.Chat), "r", "m", wire.Usage{}, wire.WriterOptions{Usage: true})
	body := w.Close(w.Text(w.Open(nil), "hello"), "stop", wire.Usage{Input: wire.N(30), Output: wire.N(1)})
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

// An hour at 100 requests a second, in sessions and without, holds no more at
// its end than after its first sixth. Under the race detector it is six minutes.
func TestALongRunHoldsNoMoreAtItsEnd(t *testing.T) {
	seconds := 3600
	if raceDetector {
		seconds = 360
	}
	model := fmt.Sprintf(`{"load_model": {"name": "hour", "model": "m", "scenarios": [
  {"id": "one", "weight": 0.5, "input_tokens": {"min": 20, "max": 40}, "output_tokens": {"min": 1, "max": 2}},
  {"id": "more", "weight": 0.5, "input_tokens": {"min": 50, "max": 200}, "output_tokens": {"min": 1, "max": 2}, "turns": {"min": 2, "max": 4}}],
  "target_qps": 100, "duration_seconds": %d}}`, seconds)
	synctest.Test(t, func(t *testing.T) {
		every := int64(seconds) * 100 / 6
		var least, most uint64
		b := &blank{each: func(n int64) {
			if n%every != 0 || n > 5*every {
				return
			}
			held := heapHeld()
			if most = max(most, held); least == 0 {
				least = held
			}
		}}
		r := &Run{Plan: &Plan{Model: decode(t, model), Seed: 1}, Target: Target{BaseURL: "http://endpoint"}, Tracer: noop.NewTracerProvider().Tracer(""), transport: b}
		result, err := r.Do(t.Context(), t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ok := 0
		for _, s := range result.PerScenario {
			ok += s.OK
		}
		if want := seconds * 100; result.Sent < want*95/100 || ok != result.Sent {
			t.Fatalf("%d of %d sent, %d answered", result.Sent, want, ok)
		}
		t.Logf("%d bytes after a sixth of the time, %d at most later", least, most)
		if least == 0 || most > least+least/10 {
			t.Errorf("%d bytes after a sixth of the time, %d at most later", least, most)
		}
	})
}
