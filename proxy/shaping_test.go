package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir/generator/sim"
	"weir/proxy/wire"
	"weir/shaper"
	"weir/store/call"
)

// pipes is a network in memory, which has no time of its own: in a bubble of
// virtual time real connections would not stand still.
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

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// world is a simulated endpoint, a proxy in front of it and a client, in
// virtual time.
type world struct {
	sim    *sim.Sim
	shape  *shaper.Shaper
	client *http.Client

	mu       sync.Mutex
	arrivals []time.Duration // of requests at the endpoint
	refused  int             // by the endpoint
}

// inWorld plays something in a world of virtual time.
func inWorld(t *testing.T, c sim.Config, rules []string, play func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{shape: &shaper.Shaper{Random: func() float64 { return 0 }}}
		for _, text := range rules {
			if _, _, err := w.shape.Change(text); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		c.Log = func(r *sim.Record) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.arrivals = append(w.arrivals, r.Accepted.Sub(start))
			if r.Status == http.StatusTooManyRequests {
				w.refused++
			}
		}
		var err error
		if w.sim, err = sim.New(c); err != nil {
			t.Fatal(err)
		}
		inner, outer := newPipes(), newPipes()
		endpoint := &http.Server{Handler: w.sim}
		p := &Proxy{Upstreams: []Upstream{{Name: "sim", URL: &url.URL{Scheme: "http", Host: "sim"}}}, Shaper: w.shape}
		if err := p.open(); err != nil {
			t.Fatal(err)
		}
		p.upstreams[0].transport.DialContext = inner.dial
		w.client = &http.Client{Transport: &http.Transport{DialContext: outer.dial, MaxIdleConnsPerHost: 1000}}
		var served sync.WaitGroup
		served.Go(func() { _ = endpoint.Serve(inner) })
		served.Go(func() { _ = p.Serve(outer) })
		play(t, w)
		w.client.CloseIdleConnections()
		p.Close()
		endpoint.Close()
		w.sim.Close()
		served.Wait()
		time.Sleep(2 * recordingPause) // the recording looks once more, and goes
	})
}

// ask sends one request and gives the answer's status, when it has come whole.
func (w *world) ask(ctx context.Context, scenario string, prompt, answer int) (status int, retryAfter string, body string) {
	text := fmt.Sprintf(`{"model":"m","stream":true,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, answer, strings.Repeat("word ", prompt))
	r, err := http.NewRequestWithContext(ctx, "POST", "http://weir/s/"+scenario+"/v1/chat/completions", strings.NewReader(text))
	if err != nil {
		return 0, "", ""
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return 0, "", ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, "", ""
	}
	return resp.StatusCode, resp.Header.Get("Retry-After"), string(b)
}

func TestFiftyRequestsASecondIntoALaneOfTenGiveTenToTheUpstream(t *testing.T) {
	inWorld(t, sim.Config{}, []string{"scenario=rag rps=10 queue=10000 wait=1h"}, func(t *testing.T, w *world) {
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		var all sync.WaitGroup
		for range 30 * 50 {
			all.Go(func() { w.ask(ctx, "rag", 10, 4) })
			time.Sleep(20 * time.Millisecond)
		}
		all.Wait()
		if rate := float64(len(w.arrivals)) / 30; rate < 9.8 || rate > 10.2 {
			t.Errorf("%.2f requests a second reached the endpoint, want 10.0 ± 0.2", rate)
		}
		for i := range w.arrivals[1:] {
			if gap := w.arrivals[i+1] - w.arrivals[i]; gap < 90*time.Millisecond {
				t.Errorf("two requests came %v apart, want no burst", gap)
			}
		}
	})
}

// served is how many answers clients have had in a while whose lane is limited
// by a rule, and how many calls the endpoint refused.
func servedIn(t *testing.T, rule string, long time.Duration) (served, refused int) {
	inWorld(t, sim.Config{HiddenLimit: 8}, []string{rule}, func(t *testing.T, w *world) {
		ctx, stop := context.WithTimeout(t.Context(), long)
		defer stop()
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 24 {
			all.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					if status, _, _ := w.ask(ctx, "rag", 100+(i*37+n*101)%900, 100+(i*53+n*211)%700); status == http.StatusOK {
						mu.Lock()
						served++
						mu.Unlock()
					}
				}
			})
		}
		all.Wait()
		refused = w.refused
	})
	return served, refused
}

func TestAdaptiveReachesTheBestFixedSettingsGoodputBehindAHiddenLimit(t *testing.T) {
	const long = 3 * time.Minute
	best, setting := 0, ""
	for _, rule := range []string{"concurrency=6", "concurrency=7", "concurrency=8", "concurrency=9", "concurrency=12"} {
		if served, refused := servedIn(t, rule+" wait=1h", long); served > best {
			best, setting = served, rule
			t.Logf("%s: %d served, %d refused", rule, served, refused)
		}
	}
	served, refused := servedIn(t, "concurrency=adaptive wait=1h", long)
	t.Logf("adaptive: %d served, %d refused; %s: %d", served, refused, setting, best)
	if float64(served) < 0.95*float64(best) {
		t.Errorf("adaptive served %d calls, %s %d: want 95 %%", served, setting, best)
	}
}

func TestARefusalIsInTheCallersDialectWithAnHonestRetryAfter(t *testing.T) {
	for _, api := range []wire.API{wire.Chat, wire.Completions, wire.Responses, wire.Messages, wire.Gemini} {
		t.Run(string(api), func(t *testing.T) {
			asked := false
			s := start(t, upstreamOf(t, func(http.ResponseWriter, *http.Request) { asked = true }), func(p *Proxy) {
				p.Shaper = &shaper.Shaper{}
				if _, _, err := p.Shaper.Change("all rpm=1 queue=none"); err != nil {
					t.Fatal(err)
				}
				if _, err := p.Shaper.Admit(t.Context(), shaper.Ask{}); err != nil {
					t.Fatal(err)
				}
			})
			resp, err := s.post(t, t.Context(), api)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := wire.For(api).ParseError(body); !ok || !strings.Contains(e.Message, "lane all (rpm=1 queue=none): its queue is full") {
				t.Errorf("status %d, body %s, read as %+v", resp.StatusCode, body, e)
			}
			if after := resp.Header.Get("Retry-After"); resp.StatusCode != 429 || after != "60" && after != "61" {
				t.Errorf("status %d, Retry-After %q, want 429 and a minute", resp.StatusCode, after)
			}
			c := s.call(t, 1)
			if c.Outcome != call.Refused || c.NoFirstToken != call.AbsentRefused || c.Lane != "all" || c.LaneLimit != "requests" || c.RetryAfter == 0 || asked {
				t.Errorf("recorded %v: lane %q, limit %q, retry after %v; the endpoint was asked: %v", c.Outcome, c.Lane, c.LaneLimit, c.RetryAfter, asked)
			}
		})
	}
}
