package sim

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"weir/generator/corpus"
	"weir/proxy/wire"
)

// ask calls the endpoint without a network, so that time can be virtual.
func ask(s *Sim, w http.ResponseWriter, api wire.API, r *wire.Request) {
	body, err := wire.For(api).AppendRequest(nil, r)
	if err != nil {
		panic(err)
	}
	hr := httptest.NewRequest(http.MethodPost, wire.For(api).Path(r), bytes.NewReader(body))
	hr.Header.Set(CorrelationHeader, "c-1")
	s.ServeHTTP(w, hr)
}

// inBubble runs a test of an endpoint in virtual time; records are its log.
func inBubble(t *testing.T, c Config, test func(t *testing.T, s *Sim, records *[]*Record)) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var records []*Record
		c.Log = func(r *Record) {
			mu.Lock()
			defer mu.Unlock()
			records = append(records, r)
		}
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		test(t, s, &records)
		s.Close()
	})
}

func TestRecordSaysWhatWasWrittenAndWhen(t *testing.T) {
	inBubble(t, Config{Engine: plainEngine, Reasoning: 0.5, Pings: 8 * time.Millisecond}, func(t *testing.T, s *Sim, records *[]*Record) {
		start := time.Now()
		r := request(wire.Messages, true)
		r.MaxTokens = wire.N(4)
		w := httptest.NewRecorder()
		ask(s, w, wire.Messages, r)
		rec := (*records)[0]
		type said struct {
			at   time.Duration
			what What
		}
		var got []said
		size := 0
		for _, e := range rec.Events {
			if e.After.Before(e.Before) || (e.Output != 0) != (e.What == Text || e.What == Reasoning) {
				t.Errorf("event %+v", e)
			}
			got = append(got, said{e.Before.Sub(start), e.What})
			size += e.Bytes
		}
		first := ms(10+1) + time.Duration(rec.Usage.Input.N)*plainEngine.PerToken
		want := []said{
			{0, Opening}, {ms(8), Ping}, {first, Reasoning},
			{first + ms(8), Ping}, {first + ms(11), Reasoning},
			{first + ms(19), Ping}, {first + ms(22), Text},
			{first + ms(30), Ping}, {first + ms(33), Text}, {first + ms(33), Closing},
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(said{})); diff != "" {
			t.Error(diff)
		}
		if size != w.Body.Len() {
			t.Errorf("%d bytes recorded, %d written", size, w.Body.Len())
		}
		if e, ok := rec.FirstToken(); !ok || e.Before.Sub(start) != first {
			t.Errorf("first token %+v", e)
		}
		if rec.ID != w.Header().Get("X-Request-Id") || rec.Correlation != "c-1" || !strings.Contains(w.Body.String(), `"id":"`+rec.ID+`"`) {
			t.Errorf("record %q of %q, answer %s", rec.ID, rec.Correlation, w.Body)
		}
		var log bytes.Buffer
		LogTo(&log, start)(rec)
		var line map[string]any
		if err := json.Unmarshal(log.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]any{
			"id": rec.ID, "correlation": "c-1", "start_unix_ns": float64(start.UnixNano()), "first_token_ns": float64(first),
			"accepted_ns": 0.0, "cancelled_ns": nil, "output_tokens": 4.0, "reasoning_tokens": 2.0, "cached_tokens": 0.0,
		} {
			if got, ok := line[key]; !ok || got != want {
				t.Errorf("the line says %s: %v, want %v", key, got, want)
			}
		}
	})
}

func TestHeadersComeAtOnceOrWithTheFirstToken(t *testing.T) {
	for _, row := range []struct {
		name string
		hold bool
	}{{"at once", false}, {"held until the first token", true}} {
		for _, api := range apis {
			inBubble(t, Config{Engine: plainEngine, HoldHead: row.hold}, func(t *testing.T, s *Sim, records *[]*Record) {
				ask(s, httptest.NewRecorder(), api, request(api, true))
				rec := (*records)[0]
				first, _ := rec.FirstToken()
				opens := api == wire.Chat || api == wire.Responses || api == wire.Messages
				if (rec.Events[0].What == Opening) != opens {
					t.Errorf("%s: %s begins with %q", row.name, api, rec.Events[0].What)
				}
				want := rec.Body
				if row.hold {
					want = first.After
				}
				if !first.Before.After(rec.Body) || !rec.Headers.Equal(want) {
					t.Errorf("%s: %s: headers %v after the body, the first token %v", row.name, api, rec.Headers.Sub(rec.Body), first.After.Sub(rec.Body))
				}
			})
		}
	}
}

func TestFaultsOfTimeTakeTheirTime(t *testing.T) {
	for _, api := range apis {
		for _, stream := range []bool{true, false} {
			took := map[string]time.Duration{}
			for _, fault := range []string{"", "slow:100%:4s", "stall:100%:4s"} {
				faults, err := ParseFaults(fault)
				if err != nil {
					t.Fatal(err)
				}
				inBubble(t, Config{Engine: plainEngine, Faults: faults}, func(t *testing.T, s *Sim, records *[]*Record) {
					ask(s, httptest.NewRecorder(), api, request(api, stream))
					rec := (*records)[0]
					took[fault] = rec.Done.Sub(rec.Accepted)
					if !stream {
						return
					}
					first, _ := rec.FirstToken()
					if late := first.Before.Sub(rec.Body) > 4*time.Second; late != strings.HasPrefix(fault, "slow") {
						t.Errorf("%s %q: first token after %v", api, fault, first.Before.Sub(rec.Body))
					}
					stalls := 0
					for i := 1; i < len(rec.Events); i++ {
						gap := rec.Events[i].Before.Sub(rec.Events[i-1].After)
						if rec.Events[i-1].Output != 0 && gap > 4*time.Second {
							stalls++
						} else if rec.Events[i-1].Output != 0 && rec.Events[i].Output != 0 && gap != ms(11) {
							t.Errorf("%s %q: a gap of %v, want a step: tokens must not pile up", api, fault, gap)
						}
					}
					if (stalls == 1) != strings.HasPrefix(fault, "stall") {
						t.Errorf("%s %q: %d pauses", api, fault, stalls)
					}
				})
			}
			for fault, d := range took {
				if more := d - took[""]; fault != "" && (more < 4*time.Second || more > 4*time.Second+ms(22)) {
					t.Errorf("%s, streamed %t, %s: %v longer", api, stream, fault, more)
				}
			}
		}
	}
}

// full is a response whose reader takes nothing.
type full struct {
	nowhere
	ctx context.Context
}

func (f full) Write(b []byte) (int, error) { <-f.ctx.Done(); return 0, f.ctx.Err() }

func TestClientThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	inBubble(t, Config{Engine: plainEngine}, func(t *testing.T, s *Sim, records *[]*Record) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan bool)
		go func() {
			ask(s, full{nowhere{http.Header{}}, ctx}, wire.Chat, request(wire.Chat, true))
			close(done)
		}()
		synctest.Wait()
		ask(s, httptest.NewRecorder(), wire.Chat, request(wire.Chat, true))
		rec := (*records)[0]
		last, _ := rec.LastToken()
		if got := last.Before.Sub(rec.Body); got > 21*ms(13) {
			t.Errorf("the other took %v for 21 steps", got)
		}
		stop()
		<-done
		if (*records)[1].Cancelled.IsZero() {
			t.Error("the one that did not read is not told as gone")
		}
	})
}

func TestAnswersAreAsLongAsAskedUnlessTheyEndOfThemselves(t *testing.T) {
	count := func(c Config, asked int64) (early, whole int) {
		e := serve(t, c)
		for range 60 {
			r := request(wire.Chat, true)
			r.MaxTokens = wire.N(asked)
			resp, body, err := post(t, e, wire.Chat, r)
			if err != nil {
				t.Fatal(err)
			}
			h := listen(t, wire.Chat, resp.Header.Get("Content-Type"), body)
			switch n := h.usage.Output.N; {
			case n == asked && h.finish == "length":
				whole++
			case n >= 1 && n <= asked && h.finish == "stop":
				early++
			default:
				t.Errorf("%d tokens, finish %q", n, h.finish)
			}
		}
		return early, whole
	}
	if early, _ := count(Config{}, 20); early != 0 {
		t.Errorf("%d of 60 ended early, want none by default", early)
	}
	if early, whole := count(Config{StopShare: 0.5}, 20); early < 15 || whole < 15 {
		t.Errorf("%d of 60 ended early, want about half", early)
	}
}

func TestEngineBoundsWhatOneRequestTakes(t *testing.T) {
	small := quick
	small.KVTokens = 100
	e := serve(t, Config{Engine: small})
	r := request(wire.Chat, true)
	r.MaxTokens = wire.N(1 << 40)
	resp, body, err := post(t, e, wire.Chat, r)
	if err != nil {
		t.Fatal(err)
	}
	h := listen(t, wire.Chat, resp.Header.Get("Content-Type"), body)
	if h.usage.Input.N+h.usage.Output.N != 100 || h.finish != "length" {
		t.Errorf("a trillion tokens asked for: %+v", h.usage)
	}
	r.System = strings.Repeat("flow ", 200)
	resp, body, _ = post(t, e, wire.Chat, r)
	if told, ok := wire.For(wire.Chat).ParseError(body); resp.StatusCode != 400 || !ok || told.Code != "context_length_exceeded" {
		t.Errorf("a prompt larger than the engine: status %d, %s", resp.StatusCode, body)
	}
}

func TestTextHasTheTokensThatUsageTells(t *testing.T) {
	tok, _ := corpus.ForModel("")
	for _, question := range []string{"What is a weir?", "什么是堰?"} {
		for _, n := range []int64{1, 7, 64, 399} {
			c := quick
			c.TokensPerStep = 4
			e := serve(t, Config{Engine: c})
			r := request(wire.Chat, true)
			r.MaxTokens, r.Messages[0].Parts[0].Text = wire.N(n), question
			resp, body, err := post(t, e, wire.Chat, r)
			if err != nil {
				t.Fatal(err)
			}
			h := listen(t, wire.Chat, resp.Header.Get("Content-Type"), body)
			// Text that begins and ends in the midst of words can be cut otherwise there.
			if got := int64(tok.Count(h.text)); h.usage.Output != wire.N(n) || got < n-n/25-2 || got > n+n/25+2 {
				t.Errorf("%q: %d tokens of text, usage %+v, want %d", question, got, h.usage.Output, n)
			}
			if want := question[0] > utf8.RuneSelf; strings.Contains(h.text, "的") != want && n > 64 {
				t.Errorf("%q is answered with %q", question, h.text)
			}
		}
	}
}

func TestReasoningIsWholeSteps(t *testing.T) {
	c := quick
	c.TokensPerStep = 4
	e := serve(t, Config{Engine: c, Reasoning: 0.3})
	r := request(wire.Chat, true)
	resp, body, err := post(t, e, wire.Chat, r)
	if err != nil {
		t.Fatal(err)
	}
	h := listen(t, wire.Chat, resp.Header.Get("Content-Type"), body)
	events := 0
	for _, w := range e.record(t).Events {
		if w.What == Reasoning {
			events++
		}
	}
	if h.usage.Reasoning != wire.N(8) || events != 2 { // 0.3 of 21 is 6, in steps of 4
		t.Errorf("usage %+v in %d events", h.usage, events)
	}
}

func TestTornEventEndsInsideACharacter(t *testing.T) {
	faults := []Fault{{Kind: "cut", Share: 1}}
	e := serve(t, Config{Faults: faults})
	_, body, err := post(t, e, wire.Chat, request(wire.Chat, true)) // is answered in Chinese
	if err == nil || len(body) == 0 || utf8.Valid(body) {
		t.Errorf("error %v, the last bytes are % x", err, body[max(len(body)-12, 0):])
	}
	if rec := e.record(t); !rec.Broken || rec.Events[len(rec.Events)-1].What != Torn || rec.Usage.Output.N == 0 {
		t.Errorf("record %+v", rec)
	}
}

func TestCloseBreaksOffWhatIsUnderWay(t *testing.T) {
	slow := quick
	slow.Slots, slow.Step = 1, time.Hour
	for _, stream := range []bool{true, false} {
		s, err := New(Config{Engine: slow})
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan bool, 3)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			started <- true
			s.ServeHTTP(w, r)
		}))
		server.Config.ErrorLog = nil
		e := &endpoint{Server: server}
		errs := make(chan error)
		for range 2 { // one decodes, one waits for a place
			go func() {
				body, _ := wire.For(wire.Chat).AppendRequest(nil, request(wire.Chat, stream))
				resp, err := http.Post(e.URL+"/v1/chat/completions", "application/json", bytes.NewReader(body))
				if err == nil {
					_, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				errs <- err
			}()
		}
		<-started
		<-started
		s.Close()
		for range 2 {
			if err := <-errs; err == nil {
				t.Errorf("streamed %t: an answer that was broken off came to an end as if whole", stream)
			}
		}
		server.Close()
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestHiddenLimitAnswers429AboveIt(t *testing.T) {
	slow := quick
	slow.Step = time.Hour
	e := serve(t, Config{Engine: slow, HiddenLimit: 1})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	body, _ := wire.For(wire.Messages).AppendRequest(nil, request(wire.Messages, true))
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, e.URL+"/v1/messages", bytes.NewReader(body))
	first, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Body.Close()
	resp, _, _ := post(t, e, wire.Messages, request(wire.Messages, true))
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("the second of one allowed: status %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
}

func TestWholeAnswersAreCompressedToo(t *testing.T) {
	e := serve(t, Config{Compress: true})
	body, _ := wire.For(wire.Chat).AppendRequest(nil, request(wire.Chat, false))
	r, _ := http.NewRequest(http.MethodPost, e.URL+"/v1/chat/completions", bytes.NewReader(body))
	r.Header.Set("Accept-Encoding", "gzip") // asked for by ourselves, so not decoded for us
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	z, err := gzip.NewReader(bufio.NewReader(resp.Body))
	if err != nil || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v, Content-Encoding %q", err, resp.Header.Get("Content-Encoding"))
	}
	var a wire.Answer
	b, _ := io.ReadAll(z)
	if err := wire.For(wire.Chat).ParseAnswer(&a, b); err != nil || a.Usage.Output != wire.N(21) {
		t.Errorf("%v: %s", err, b)
	}
}

func TestWhatNoEndpointCanDoIsRefused(t *testing.T) {
	for _, row := range []struct {
		config Config
		want   string
	}{
		{Config{StopShare: 1.5}, "stop share 1.5: want 0 to 1"},
		{Config{ToolShare: -1}, "tool share -1"},
		{Config{Faults: []Fault{{Kind: "flood", Share: 0.1}}}, "want a kind of 429, 500"},
		{Config{Faults: []Fault{{Kind: "429", Share: 0.6}, {Kind: "500", Share: 0.6}}}, "sum to 120%"},
		{Config{WriteSplit: -1}, "write split -1"},
		{Config{Engine: EngineConfig{Slots: 1}}, "must all be at least 1"},
		{Config{Engine: EngineConfig{Slots: 1, Chunk: 1, TokensPerStep: 1, KVTokens: 1}}, "a step must take more than 0"},
	} {
		if s, err := New(row.config); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want …%s…", row.config, err, row.want)
			if s != nil {
				s.Close()
			}
		}
	}
}
