package generator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"weir/proxy/wire"
	"weir/store/call"
)

// pipes is a network in memory: in a bubble of virtual time real connections
// would not stand still.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

const fiftyASecond = `{"load_model": {"name": "s", "model": "m", "scenarios": [{"id": "a", "weight": 1, "input_tokens": {"min": 20, "max": 40}, "output_tokens": {"min": 1, "max": 2}}],
  "target_qps": 50, "duration_seconds": 60, "arrivals": {"process": "constant"}}}`

// An upstream answers in 10 ms, but for 5 s from the 20th second on, when it
// answers nothing. The client may have 10 calls in flight: those 10 see the
// stall, and all others that were planned for it have to wait for a place. A
// client that counted from its sends would show 10 slow calls of 3000.
func TestAStallShowsInTheResponseTimeAsThePlanDemandsAndNotInTheServiceTime(t *testing.T) {
	const (
		normal = 10 * time.Millisecond
		from   = 20 * time.Second
		stall  = 5 * time.Second
	)
	for _, row := range []struct {
		name                 string
		places               int
		service99            time.Duration
		response95, respon99 time.Duration
		verdict              Verdict
	}{
		// Of 3000 requests the 150 with the most to wait were due in the first 3 s
		// of the stall: the latest of them waits 2 s. The 30 worst were due in its
		// first 0.6 s, so p99 is 4.4 s.
		{"ten places: the service time hides it", 10, normal, 2 * time.Second, 4400 * time.Millisecond, InvalidClient},
		// With room for all, all are sent on time and see it themselves.
		{"any number: both show it", 0, 4400 * time.Millisecond, 2 * time.Second, 4400 * time.Millisecond, Valid},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := newPipes()
				var start time.Time
				var mu sync.Mutex
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					mu.Lock()
					if start.IsZero() {
						start = time.Now()
					}
					if into := time.Since(start) - from; into >= 0 && into < stall {
						mu.Unlock()
						time.Sleep(stall - into)
					} else {
						mu.Unlock()
					}
					time.Sleep(normal)
					writer := wire.NewWriter(wire.For(wire.Chat), "r", "m", wire.Usage{}, wire.WriterOptions{})
					w.Header().Set("Content-Type", "text/event-stream")
					w.Write(writer.Close(writer.Text(writer.Open(nil), "hello"), "stop", wire.Usage{}))
				})}
				var served sync.WaitGroup
				served.Go(func() { _ = server.Serve(network) })
				recorded := &recorder{}
				trip := &http.Transport{DialContext: network.dial, MaxIdleConnsPerHost: 1000}
				r := &Run{Plan: &Plan{Model: decode(t, fiftyASecond), Seed: 1}, Target: Target{BaseURL: "http://endpoint"},
					Tracer: recorded.tracer(), MaxInFlight: row.places, transport: trip}
				result, err := r.Do(context.Background(), context.Background())
				if err != nil {
					t.Fatal(err)
				}
				trip.CloseIdleConnections()
				server.Close()
				served.Wait()

				var service, response []time.Duration
				for _, c := range recorded.calls(t) {
					s, ok := c.TTFTUpstream()
					d, also := c.TTFTResponse()
					if !ok || !also {
						t.Fatalf("call %v has no TTFT", c)
					}
					service, response = append(service, s), append(response, d)
				}
				if len(service) != 3000 {
					t.Fatalf("%d calls, want 3000: %+v", len(service), result)
				}
				slices.Sort(service)
				slices.Sort(response)
				near := func(what string, got, want time.Duration) {
					t.Helper()
					// What waited is sent ten at a time, 10 ms each: 0.25 s for all of it.
					if off := got - want; off < -50*time.Millisecond || off > 300*time.Millisecond {
						t.Errorf("%s is %s, want %s", what, got, want)
					}
				}
				near("service p99", call.Percentile(service, 99), row.service99)
				near("response p95", call.Percentile(response, 95), row.response95)
				near("response p99", call.Percentile(response, 99), row.respon99)
				near("response max", response[len(response)-1], stall)
				if p50 := call.Percentile(response, 50); p50 != normal {
					t.Errorf("response p50 is %s", p50)
				}
				if result.Verdict != row.verdict || row.places == 0 && result.Lag.Max > 0 {
					t.Errorf("%s, lag at most %s: %q", result.Verdict, result.Lag.Max, result.Reasons)
				}
			})
		})
	}
}

// tireless answers at once, and remembers nothing.
type tireless struct{ body []byte }

func (s *tireless) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(2 * time.Second)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(s.body)), Request: r}, nil
}

func TestALongRunTakesNoMoreMemoryThanAShortOne(t *testing.T) {
	length := time.Hour
	if raceDetector {
		length = 6 * time.Minute // it takes ten times as long
	}
	model := fmt.Sprintf(`{"load_model": {"name": "s", "model": "m", "scenarios": [
	  {"id": "a", "weight": 0.7, "input_tokens": {"min": 20, "max": 40}, "output_tokens": {"min": 1, "max": 2}},
	  {"id": "b", "weight": 0.3, "input_tokens": {"min": 20, "max": 200}, "output_tokens": {"min": 1, "max": 2}, "turns": {"min": 2, "max": 3}, "think_seconds": {"min": 1, "max": 5}}],
	  "target_qps": 100, "duration_seconds": %g}}`, length.Seconds())
	synctest.Test(t, func(t *testing.T) {
		writer := wire.NewWriter(wire.For(wire.Chat), "r", "m", wire.Usage{}, wire.WriterOptions{})
		var heap []uint64
		r := &Run{Plan: &Plan{Model: decode(t, model), Seed: 1}, Target: Target{BaseURL: "http://endpoint"}, Tracer: noop.NewTracerProvider().Tracer(""),
			transport:     &tireless{writer.Close(writer.Text(writer.Open(nil), "hello"), "stop", wire.Usage{})},
			AbortIf:       []Condition{conditionOf(t, "error rate > 1% for 1m"), conditionOf(t, "ttft p95 > 8s for 1m")},
			ProgressEvery: length / 12,
			OnProgress: func(p Progress) {
				if p.Elapsed > 0 && p.Elapsed < p.Length {
					runtime.GC()
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					heap = append(heap, m.HeapAlloc)
				}
			}}
		result, err := r.Do(context.Background(), context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if want := 100 * length.Seconds(); float64(result.Sent) < 0.97*want || len(heap) < 10 || result.Partial {
			t.Fatalf("%d sent, %d looks at the heap, %q", result.Sent, len(heap), result.Stopped)
		}
		// The first twelfth is left out: sessions of several turns are not under way yet.
		least, most := slices.Min(heap[1:]), slices.Max(heap[1:])
		t.Logf("%d requests: heap %d to %d KiB", result.Sent, least>>10, most>>10)
		if float64(most) > 1.1*float64(least) {
			t.Errorf("the heap grew from %d to %d KiB: %v", least>>10, most>>10, heap)
		}
	})
}
