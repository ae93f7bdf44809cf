package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/proxy/wire"
	"weir/shaper"
	"weir/store/call"
)

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
			if c.Outcome != call.Refused || c.NoFirstToken != call.AbsentRefused || c.Lane != "all" || c.LaneLimit != "requests" || c.LaneRefusal != shaper.FullQueue || c.Status != 429 || c.RetryAfter == 0 || asked {
				t.Errorf("recorded %v, status %d: lane %q, limit %q, %q, retry after %v; the endpoint was asked: %v", c.Outcome, c.Status, c.Lane, c.LaneLimit, c.LaneRefusal, c.RetryAfter, asked)
			}
		})
	}
}

func TestARefusedCallIsSentAgainAndTheClientSeesOnlyTheAnswer(t *testing.T) {
	var mu sync.Mutex
	var bodies []string
	s := shapedBy(t, "all concurrency=5 retry=2", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		bodies = append(bodies, string(body))
		n := len(bodies)
		mu.Unlock()
		if n < 3 {
			w.Header().Set("Retry-After-Ms", "30")
			w.Header().Set("X-Attempt", fmt.Sprint(n))
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"error":{"message":"slow down","type":"rate_limit_error"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, answerInOne)
	})
	resp, err := s.post(t, t.Context(), wire.Chat)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || string(got) != answerInOne || resp.Header.Get("X-Attempt") != "" {
		t.Errorf("status %d, headers %v, body %q, error %v", resp.StatusCode, resp.Header, got, err)
	}
	if len(bodies) != 3 || bodies[0] == "" || bodies[0] != bodies[1] || bodies[1] != bodies[2] {
		t.Errorf("the endpoint got %q", bodies)
	}
	c := s.call(t, 1)
	if c.Outcome != call.OK || c.Refusals != 2 || !c.Again.Reached() || c.Again <= c.Admitted || c.HoldReason != "429" || c.Held == 0 {
		t.Errorf("recorded %v, %d refusals, again %v after admitted %v, held %v for %q", c.Outcome, c.Refusals, c.Again, c.Admitted, c.Held, c.HoldReason)
	}
	if parts, ok := c.Account(); !ok || parts.Attempts != time.Duration(c.Again-c.Admitted) {
		t.Errorf("account %+v: want the attempts' time as its own part", parts)
	}
}

func TestALimitThatIsUsedUpIsWaitedForUntilTheNextCallFits(t *testing.T) {
	for _, row := range []struct {
		sentence string
		header   map[string]string
		hold     time.Duration
		why      string
	}{
		{"OpenAI's: the time until all are back", map[string]string{"X-Ratelimit-Limit-Requests": "60", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "1m0s"}, time.Second, "requests used up"},
		{"a window's end", map[string]string{"X-Ratelimit-Limit": "60", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "60"}, time.Minute, "used up"},
		{"the IETF's field", map[string]string{"RateLimit": `"default";r=0;t=30`, "RateLimit-Policy": `"default";q=60;w=60`}, 30 * time.Second, "default used up"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			s := shapedBy(t, "all concurrency=5", func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range row.header {
					w.Header().Set(name, value)
				}
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, answerInOne)
			})
			sent := time.Now()
			resp, err := s.post(t, t.Context(), wire.Chat)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			lanes := s.Shaper.Lanes()
			l := lanes[len(lanes)-1]
			left, passed := time.Duration(l.HeldMS*1e6), time.Since(sent)
			if passed > row.hold && left == 0 {
				return // it was over before one could look
			}
			if left > row.hold || left+passed < row.hold || l.HoldReason != row.why {
				t.Errorf("held for %v more because of %q, %v after the call; want %v because of %q", left, l.HoldReason, passed, row.hold, row.why)
			}
		})
	}
}

func TestRetryAfterZeroIsToComeAgainAtOnce(t *testing.T) {
	asked := 0
	s := shapedBy(t, "all concurrency=5 retry=2 wait=900ms", func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 3 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, answerInOne)
	})
	resp, err := s.post(t, t.Context(), wire.Chat)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if c := s.call(t, 1); resp.StatusCode != http.StatusOK || c.Refusals != 2 || c.Held != 0 {
		t.Errorf("status %d after %d refusals, held for %v: want no wait between them", resp.StatusCode, c.Refusals, c.Held)
	}
}

func TestWithoutALimitTheEndpointsWordIsKeptAndHoldsNobody(t *testing.T) {
	var asked atomic.Int64
	s := start(t, upstreamOf(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}), func(p *Proxy) { p.Shaper = &shaper.Shaper{} })
	post := func() (status int, retryAfter string) {
		resp, err := s.post(t, t.Context(), wire.Chat)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode, resp.Header.Get("Retry-After")
	}
	for range 2 {
		if status, after := post(); status != 429 || after != "3600" {
			t.Errorf("status %d, Retry-After %q: want the endpoint's own", status, after)
		}
	}
	if lanes := s.Shaper.Lanes(); len(lanes) != 1 || lanes[0].HeldMS == 0 || lanes[0].EndpointRefused != 2 || asked.Load() != 2 {
		t.Errorf("lanes %+v after %d calls at the endpoint", lanes, asked.Load())
	}
	// A limit of others, and the call is refused in the endpoint's place.
	if _, _, err := s.Shaper.Change("scenario=elsewhere rps=1"); err != nil {
		t.Fatal(err)
	}
	status, after := post()
	if seconds, err := strconv.Atoi(after); err != nil || status != 429 || seconds < 3000 || seconds > 3600 || asked.Load() != 2 {
		t.Errorf("status %d, Retry-After %q after %d calls at the endpoint", status, after, asked.Load())
	}
}

func TestTheLastRefusalReachesTheClientAsItIs(t *testing.T) {
	n := 0
	s := shapedBy(t, "all concurrency=5 retry=1", func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set("Retry-After-Ms", "10")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprintf(w, `{"error":{"message":"no %d","type":"rate_limit_error"}}`, n)
	})
	resp, err := s.post(t, t.Context(), wire.Chat)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 429 || !strings.Contains(string(body), "no 2") || n != 2 {
		t.Errorf("status %d, body %s after %d attempts", resp.StatusCode, body, n)
	}
	if c := s.call(t, 1); c.Outcome != call.RateLimited || c.Refusals != 1 {
		t.Errorf("recorded %v and %d refusals before it", c.Outcome, c.Refusals)
	}
}
