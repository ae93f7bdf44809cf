package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
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

// seen is what the endpoint has seen: it may still take down the last.
func (w *world) seen() (arrivals []time.Duration, refused int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.arrivals), w.refused
}

// ask sends one request and gives the answer's status, when it has come whole.
func (w *world) ask(ctx context.Context, scenario string, prompt, answer int) (status int, retryAfter string, body string) {
	text := fmt.Sprintf(`{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, answer, strings.Repeat("word ", prompt))
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
		arrivals, _ := w.seen()
		if rate := float64(len(arrivals)) / 30; rate < 9.8 || rate > 10.2 {
			t.Errorf("%.2f requests a second reached the endpoint, want 10.0 ± 0.2", rate)
		}
		for i := range arrivals[1:] {
			if gap := arrivals[i+1] - arrivals[i]; gap < 90*time.Millisecond {
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
		_, refused = w.seen()
	})
	return served, refused
}

func TestAdaptiveReachesTheBestFixedSettingsGoodputBehindAHiddenLimit(t *testing.T) {
	const long = 2 * time.Minute
	best, setting := 0, ""
	for _, rule := range []string{"concurrency=7", "concurrency=8", "concurrency=9"} {
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

func TestAdaptiveBacksOffWithinTwoSecondsWhenTheHiddenLimitHalves(t *testing.T) {
	inWorld(t, sim.Config{HiddenLimit: 8}, []string{"concurrency=adaptive wait=1h"}, func(t *testing.T, w *world) {
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 24 {
			all.Go(func() {
				for ctx.Err() == nil {
					w.ask(ctx, "rag", 500, 200)
				}
			})
		}
		level := func() int { return *w.shape.Lanes()[0].MostInFlight }
		time.Sleep(time.Minute)
		if n := level(); n < 7 || n > 9 {
			t.Errorf("behind a hidden limit of 8 it has found %d", n)
		}
		w.sim.SetHiddenLimit(4)
		time.Sleep(2 * time.Second)
		if n := level(); n > 4 {
			t.Errorf("2 s after the limit has halved %d may be in flight", n)
		}
		time.Sleep(10 * time.Second)
		if l := w.shape.Lanes()[0]; l.InFlight > 5 {
			t.Errorf("12 s after the limit has halved %d are in flight", l.InFlight)
		}
		stop()
		all.Wait()
	})
}

// shapedBy is a proxy with rules in front of an upstream.
func shapedBy(t *testing.T, rule string, upstream http.HandlerFunc) *sidecar {
	return start(t, upstreamOf(t, upstream), func(p *Proxy) {
		p.Shaper = &shaper.Shaper{Random: func() float64 { return 0 }}
		if _, _, err := p.Shaper.Change(rule); err != nil {
			t.Fatal(err)
		}
	})
}

const answerInOne = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1,\"total_tokens\":6}}\n\ndata: [DONE]\n\n"

func TestAPermitIsHeldToTheStreamsEndNotOnlyUntilHeadersAreSent(t *testing.T) {
	var mu sync.Mutex
	inside, most := 0, 0
	first := make(chan struct{})
	s := shapedBy(t, "concurrency=1", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		inside++
		most = max(most, inside)
		n := inside
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		if n == 1 {
			<-first
		}
		mu.Lock()
		inside--
		mu.Unlock()
		io.WriteString(w, answerInOne)
	})
	got := make(chan error, 2)
	post := func() {
		resp, err := s.post(t, t.Context(), wire.Chat)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		got <- err
	}
	go post()
	go post()
	// The one has its headers; the other waits, until the first one's stream ends.
	waitUntil(t, func() bool { return s.Shaper.Lanes()[0].Waiting == 1 })
	close(first)
	for range 2 {
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
	if most != 1 {
		t.Errorf("%d were at the endpoint at once, want 1", most)
	}
	c := s.call(t, 2)
	if c.LaneLimit == "" { // it arrived later, and asked first
		c = s.call(t, 1)
	}
	if c.Lane != "all" || c.LaneLimit != "in flight" || c.QueuePosition != 1 {
		t.Errorf("the one that waited: lane %q, limit %q, position %d", c.Lane, c.LaneLimit, c.QueuePosition)
	}
	parts, _ := c.Account()
	if queued, ok := c.Queued(); !ok || queued != parts.Queue || queued == 0 {
		t.Errorf("queued %v, in the account %v", queued, parts.Queue)
	}
}

// waitUntil waits for something that will be.
func waitUntil(t *testing.T, so func() bool) {
	t.Helper()
	for range 2000 {
		if so() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("it did not come to be")
}

func TestAWaiterWhoLeavesIsRecordedAndNeverSent(t *testing.T) {
	asked := 0
	s := shapedBy(t, "all rpm=1 wait=10m", func(w http.ResponseWriter, _ *http.Request) { asked++; io.WriteString(w, answerInOne) })
	if resp, err := s.post(t, t.Context(), wire.Chat); err != nil {
		t.Fatal(err)
	} else {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := s.post(t, ctx, wire.Chat); err == nil {
			resp.Body.Close()
			t.Error("it was answered")
		}
	}()
	waitUntil(t, func() bool { return s.Shaper.Lanes()[0].Waiting == 1 })
	cancel()
	<-gone
	c := s.call(t, 2)
	if c.Outcome != call.ClientGone || c.Admitted.Reached() || asked != 1 || c.Lane != "all" || c.LaneLimit != "requests" {
		t.Errorf("recorded %v, admitted %v, lane %q, limit %q; the endpoint was asked %d times", c.Outcome, c.Admitted, c.Lane, c.LaneLimit, asked)
	}
	waitUntil(t, func() bool { return s.Shaper.Lanes()[0].Waiting == 0 })
}

func TestListsOfModelsDoNotWaitInLanes(t *testing.T) {
	s := shapedBy(t, "all rpm=1 queue=none", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"data":[]}`) })
	for range 3 {
		resp, err := s.client.Get(s.url + "/v1/models")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("status %d", resp.StatusCode)
		}
	}
}

func TestALaneOfSixtyThousandTokensAMinuteKeepsItsBudgetOverFiveMinutes(t *testing.T) {
	const budget, minutes = 60_000, 5
	inWorld(t, sim.Config{}, []string{"tpm=60000 wait=1h queue=10000"}, func(t *testing.T, w *world) {
		ctx, stop := context.WithTimeout(t.Context(), minutes*time.Minute)
		defer stop()
		var mu sync.Mutex
		tokens := 0
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					status, _, body := w.ask(ctx, "rag", 100+(i*37+n*101)%900, 50+(i*53+n*211)%500)
					if status != http.StatusOK {
						continue
					}
					mu.Lock()
					tokens += usageIn(t, body)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if off := float64(tokens)/(budget*minutes) - 1; off < -0.03 || off > 0.03 {
			t.Errorf("%d tokens in %d minutes: %.1f %% off the budget", tokens, minutes, 100*off)
		}
	})
}

// usageIn is the tokens that an answer reports.
func usageIn(t *testing.T, body string) int {
	t.Helper()
	_, text, _ := strings.Cut(body, `"usage":{`)
	_, text, ok := strings.Cut(text, `"total_tokens":`)
	n := 0
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil || !ok {
		t.Errorf("no usage in %q", body[max(len(body)-300, 0):])
	}
	return n
}

func TestKillingHalfTheClientsInTheQueueDelaysNobody(t *testing.T) {
	inWorld(t, sim.Config{}, []string{"rps=10 wait=1h queue=1000"}, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		var kill []context.CancelFunc
		for i := range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%2 == 1 {
				kill = append(kill, cancel)
			}
			all.Go(func() { w.ask(ctx, "rag", 10, 4) })
			synctest.Wait()
		}
		for _, cancel := range kill {
			cancel()
		}
		all.Wait()
		arrivals, _ := w.seen()
		if len(arrivals) != 100 {
			t.Fatalf("%d requests reached the endpoint, want the 100 whose clients stayed", len(arrivals))
		}
		for i := range arrivals[1:] {
			if gap := arrivals[i+1] - arrivals[i]; gap < 95*time.Millisecond || gap > 105*time.Millisecond {
				t.Errorf("request %d came %v after the one before, want 100 ms", i+2, gap)
			}
		}
	})
}
