package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
	"weir/shaper"
	"weir/store/call"
)

// written is what a client got in one write, and when.
type written struct {
	at   time.Duration
	text string
}

// recorder is a client that takes down what is written to it.
type recorder struct {
	*httptest.ResponseRecorder
	began  time.Time
	writes []written
}

func (r *recorder) Write(p []byte) (int, error) {
	r.writes = append(r.writes, written{time.Since(r.began), string(p)})
	return len(p), nil
}

// said is what an upstream sends after a time.
type said struct {
	after time.Duration // since what it sent before
	text  string
}

// feeder is an answer that comes as an upstream says it.
type feeder struct {
	io.Reader
	reads int
}

func (f *feeder) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	f.reads++
	return n, err
}

func (f *feeder) Close() error { return f.Reader.(io.Closer).Close() }

// worsened passes one answer in virtual time.
func worsened(t *testing.T, ctx context.Context, impair string, from io.ReadCloser) (*recorder, *call.Call, error) {
	t.Helper()
	list, err := shaper.ParseImpairments(impair)
	if err != nil {
		t.Fatal(err)
	}
	rec := &recorder{ResponseRecorder: httptest.NewRecorder(), began: time.Now()}
	c := &call.Call{Side: call.Proxy, API: wire.Chat, Operation: wire.OpChat}
	c.Request.Stream = true
	x := &exchange{
		p: &Proxy{Impair: shaper.NewImpairer(list, 1), Log: slog.New(slog.DiscardHandler), stopping: context.Background()},
		w: rec, r: httptest.NewRequest("POST", "/v1/chat/completions", nil).WithContext(ctx), c: c, format: wire.For(wire.Chat), up: &Upstream{Name: "up"},
	}
	x.to = rec
	x.c.Arrived = call.Now()
	x.impair()
	x.meter = call.NewMeter(c, x.format)
	x.c.Sent = call.Now()
	resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: from}
	x.meter.Begin(200, resp.Header, call.Now())
	if !x.worse.head(resp, rec.Header()) {
		t.Fatal("nothing is left to befall the call")
	}
	how, err := x.worse.copy(from, http.NewResponseController(rec))
	x.meter.End(how, err, call.Now())
	return rec, c, err
}

func says(all ...said) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		for _, s := range all {
			time.Sleep(s.after)
			if _, err := io.WriteString(w, s.text); err != nil {
				return
			}
		}
		w.Close()
	}()
	return &feeder{Reader: r}
}

func tokenOf(text string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", text)
}

const (
	opening = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n"
	finish  = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	done    = "data: [DONE]\n\n"
	closing = finish + done
)

const second = time.Second

func TestTimesAreAddedWhereTheyAreAskedFor(t *testing.T) {
	for _, row := range []struct {
		name, impair string
		upstream     []said
		want         []written
		felt         time.Duration // less the upstream's: what the client waited longer
	}{
		{"first_token → it alone comes later", "first_token+3s",
			[]said{{second, opening}, {second, tokenOf("a")}, {second, tokenOf("b")}, {9 * second, tokenOf("c") + closing}},
			[]written{{1 * second, opening}, {5 * second, tokenOf("a")}, {5 * second, tokenOf("b")}, {12 * second, tokenOf("c")}, {12 * second, finish}, {12 * second, done}},
			3 * second},
		{"pace → tokens come no faster", "pace=0.5",
			[]said{{second, opening + tokenOf("a") + tokenOf("b") + tokenOf("c") + closing}},
			[]written{{1 * second, opening}, {1 * second, tokenOf("a")}, {3 * second, tokenOf("b")}, {5 * second, tokenOf("c")}, {5 * second, finish}, {5 * second, done}},
			0},
		{"stall → a pause before that event", "stall@2+7s",
			[]said{{0, tokenOf("a")}, {second, tokenOf("b")}, {second, tokenOf("c")}},
			[]written{{0, tokenOf("a")}, {8 * second, tokenOf("b")}, {8 * second, tokenOf("c")}},
			0},
		{"coalesce by number → one write, when the last has come", "coalesce=2",
			[]said{{0, tokenOf("a")}, {second, tokenOf("b")}, {second, tokenOf("c")}},
			[]written{{1 * second, tokenOf("a") + tokenOf("b")}, {2 * second, tokenOf("c")}},
			second},
		{"coalesce by time → one write, when the time is over", "coalesce+1.5s",
			[]said{{0, tokenOf("a")}, {second, tokenOf("b")}, {second, tokenOf("c")}},
			[]written{{1500 * time.Millisecond, tokenOf("a") + tokenOf("b")}, {2 * second, tokenOf("c")}},
			1500 * time.Millisecond},
		{"pings → until the first token", "pings=1, first_token+1.7s",
			[]said{{1500 * time.Millisecond, tokenOf("a")}, {5 * second, tokenOf("b")}},
			[]written{{1 * second, ": ping\n\n"}, {2 * second, ": ping\n\n"}, {3 * second, ": ping\n\n"}, {3200 * time.Millisecond, tokenOf("a")}, {6500 * time.Millisecond, tokenOf("b")}},
			1700 * time.Millisecond},
		{"pings throughout → to the end", "pings_throughout=1",
			[]said{{1500 * time.Millisecond, tokenOf("a")}, {second, tokenOf("b")}},
			[]written{{1 * second, ": ping\n\n"}, {1500 * time.Millisecond, tokenOf("a")}, {2 * second, ": ping\n\n"}, {2500 * time.Millisecond, tokenOf("b")}},
			0},
		{"the upstream's own comments → at once", "stall@9+1s",
			[]said{{0, ": one\n"}, {second, "\n: two\r\n\r\n"}, {second, tokenOf("a")}},
			[]written{{0, ": one\n"}, {1 * second, "\n"}, {1 * second, ": two\r\n"}, {1 * second, "\r\n"}, {2 * second, tokenOf("a")}},
			0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec, c, err := worsened(t, t.Context(), row.impair, says(row.upstream...))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(row.want, rec.writes, cmp.AllowUnexported(written{})); diff != "" {
					t.Error(diff)
				}
				if got := time.Duration(c.FirstToken.Delivered - c.FirstToken.Received); got != row.felt {
					t.Errorf("the first token came at %s and left after %s, want %s", c.FirstToken.Received, got, row.felt)
				}
				if c.Injected != row.felt {
					t.Errorf("injected %s, want %s", c.Injected, row.felt)
				}
				if got, want := strings.Join(c.Impaired, ", "), row.impair; !strings.HasPrefix(got, "stall@9") && got != want {
					t.Errorf("the span says %q, want %q", got, want)
				}
			})
		})
	}
}

func TestUpstreamsInstantsAreItsOwnHoweverLongTheClientWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, _ := worsened(t, t.Context(), "first_token+60s", says(said{second, opening}, said{second, tokenOf("a")}, said{second, tokenOf("b")}, said{second, closing}))
		if got := []time.Duration{time.Duration(c.FirstToken.Received - c.Sent), time.Duration(c.LastToken.Received - c.Sent)}; got[0] != 2*second || got[1] != 3*second {
			t.Errorf("first and last token came after %v, want 2s and 3s", got)
		}
		if c.Outcome != call.OK {
			t.Errorf("recorded %v", c)
		}
	})
}

func TestBandwidthIsTheBytesASecond(t *testing.T) {
	for _, rate := range []int{1, 100, 10_000} {
		synctest.Test(t, func(t *testing.T) {
			body := opening + tokenOf("a") + tokenOf(strings.Repeat("b", 1000)) + closing
			rec, c, err := worsened(t, t.Context(), fmt.Sprintf("bandwidth=%d", rate), says(said{0, body}))
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, w := range rec.writes {
				text += w.text
				if most := int(w.at.Seconds()*float64(rate)) + 1; len(text) > most {
					t.Fatalf("%d bytes after %s at %d bytes a second", len(text), w.at, rate)
				}
			}
			last := rec.writes[len(rec.writes)-1].at
			if want := time.Duration(float64(len(body)) / float64(rate) * float64(time.Second)); text != body || (last-want).Abs() > time.Millisecond {
				t.Errorf("%d of %d bytes came in %s, want %s", len(text), len(body), last, want)
			}
			if c.Injected <= 0 || !c.FirstToken.Reached() {
				t.Errorf("injected %s, first token %v", c.Injected, c.FirstToken)
			}
		})
	}
}

func TestClientThatLeavesEndsADelayAtOnce(t *testing.T) {
	for _, impair := range []string{"first_token+1h", "stall@1+1h", "bandwidth=1", "pace=0.001", "coalesce=10000+1h"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*second)
			defer cancel()
			r, w := io.Pipe()
			go io.WriteString(w, tokenOf("a")+tokenOf("b"))
			began := time.Now()
			_, c, _ := worsened(t, ctx, impair, &feeder{Reader: r})
			if took := time.Since(began); took != 5*second {
				t.Errorf("%s: the call ended %s after its beginning, want 5s", impair, took)
			}
			if c.Outcome != call.ClientGone {
				t.Errorf("%s: recorded %v", impair, c)
			}
		})
	}
}

func TestWhatIsReadAheadOfASlowClientIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		from := &feeder{Reader: r}
		go func() {
			for {
				if _, err := io.WriteString(w, tokenOf(strings.Repeat("x", 5000))); err != nil {
					return
				}
			}
		}()
		ended := make(chan error)
		go func() {
			_, _, err := worsened(t, ctx, "stall@3+30m", from)
			ended <- err
		}()
		synctest.Wait()
		if from.reads < mostHeld || from.reads > mostHeld+10 {
			t.Errorf("%d reads were taken from an upstream whose client waits, want about %d", from.reads, mostHeld)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
