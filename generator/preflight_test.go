package generator

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/proxy/wire"
)

const twoDialects = `{"load_model": {"name": "p", "models": [{"name": "m1", "share": 0.5}, {"name": "m2", "share": 0.5}], "scenarios": [
  {"id": "a", "weight": 0.5, "input_tokens": {"min": 50, "max": 60}, "output_tokens": {"min": 5, "max": 6}},
  {"id": "b", "weight": 0.5, "input_tokens": {"min": 50, "max": 60}, "output_tokens": {"min": 5, "max": 6}, "api": "messages", "model": "m3"}],
  "target_qps": 50, "duration_seconds": 4}}`

func TestPreflightAsksOnceForEachAPIAndModel(t *testing.T) {
	e := newEndpoint(t)
	r, rec := newRun(e, &Plan{Model: decode(t, twoDialects), Seed: 1})
	warnings, err := r.Preflight(context.Background())
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v, %q", err, warnings)
	}
	var models []string
	for i, asked := range e.requests {
		models = append(models, asked.Model)
		if h := e.headers[i]; h.Get("X-Weir-Run") != "" || h.Get("X-Weir-Scenario") != "preflight" || h.Get("X-Weir-Warm-Up") != "true" {
			t.Errorf("headers %v", h)
		}
	}
	if got := strings.Join(models, " "); got != "m1 m2 m3" {
		t.Errorf("asked for %s", got)
	}
	if n := len(rec.calls(t)); n > 0 {
		t.Errorf("the preflight left %d spans", n)
	}
}

func TestPreflightSaysWhatIsWrong(t *testing.T) {
	answer := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	apiError := func(status int, message, code string) http.HandlerFunc {
		return answer(status, "application/json", string(wire.For(wire.Chat).AppendError(nil, &wire.Error{Type: "invalid_request_error", Message: message, Code: code})))
	}
	whole := wire.For(wire.Chat).AppendAnswer(nil, &wire.Answer{ID: "x", Model: "m", Finish: "stop", Parts: []wire.Part{{Kind: wire.KindText, Text: "ready"}}, Usage: wire.Usage{Input: wire.N(9), Output: wire.N(1)}})
	stream := func(usage bool, cut int) http.HandlerFunc {
		w := wire.NewWriter(wire.For(wire.Chat), "x", "m", wire.Usage{}, wire.WriterOptions{Usage: usage})
		b := w.Close(w.Text(w.Open(nil), "ready"), "stop", wire.Usage{Input: wire.N(9), Output: wire.N(1)})
		return answer(200, "text/event-stream", string(b[:len(b)-cut]))
	}
	for _, row := range []struct {
		name    string
		handler http.HandlerFunc
		key     Secret
		want    []string // in the error; none: no error
		warning string
	}{
		{"all is well → nothing", stream(true, 0), "k", nil, ""},
		{"no usage → a warning", stream(false, 0), "k", nil, "no usage"},
		{"no key given, 401 → set it", apiError(401, "You did not provide a key", ""), "", []string{"wants a key", "401", "environment"}, ""},
		{"wrong key, 401 → check it", apiError(401, "Incorrect API key provided: sk-secretsecret", "invalid_api_key"), "sk-secretsecret", []string{"refused", "check"}, ""},
		{"403 → the key again", apiError(403, "not allowed", ""), "k", []string{"refused", "403"}, ""},
		{"404 about the model → name another", apiError(404, "The model `m` does not exist", "model_not_found"), "k", []string{"does not know the model", "--model"}, ""},
		{"400 about the model → name another", apiError(400, "unknown model m", ""), "k", []string{"does not know the model"}, ""},
		{"404 in plain text → the base path", answer(404, "text/plain", "404 page not found"), "k", []string{"nothing answers POST /v1/chat/completions", "base URL"}, ""},
		{"400 for another reason → its message", apiError(400, "temperature is too high", ""), "k", []string{"status 400", "temperature"}, ""},
		{"a web page → not this API", answer(200, "text/html", "<html>hello</html>"), "k", []string{"not as this API promises"}, ""},
		{"200 without choices → not this API", answer(200, "application/json", `{"ok":true}`), "k", []string{"not as this API promises"}, ""},
		{"a whole answer for a stream → said", answer(200, "application/json", string(whole)), "k", []string{"stream was asked for", "came whole"}, ""},
		{"a cut stream → said", stream(true, 40), "k", []string{"does not end"}, ""},
		{"an error inside a 200 → said", answer(200, "text/event-stream", "data: {\"error\":{\"message\":\"no capacity\"}}\n\n"), "k", []string{"holds an error", "no capacity"}, ""},
		{"429 → a warning", apiError(429, "slow down", ""), "k", nil, "limits the rate"},
		{"500 → its message", apiError(500, "boom", ""), "k", []string{"500", "boom", "4 tries", "--no-preflight"}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := httptest.NewServer(row.handler)
			defer s.Close()
			warnings, err := preflight(t, s.URL, row.key)
			if len(row.want) == 0 && err != nil || len(row.want) > 0 && err == nil {
				t.Fatalf("error %v, want one with %q", err, row.want)
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: does not say %q", err, want)
				}
			}
			if err != nil && strings.Contains(err.Error(), "secretsecret") {
				t.Errorf("%v: shows the key", err)
			}
			if got := strings.Join(warnings, "\n"); row.warning == "" && got != "" || !strings.Contains(got, row.warning) {
				t.Errorf("warnings %q, want %q", got, row.warning)
			}
		})
	}
}

func TestPreflightSaysWhyNothingAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().String()
	l.Close()
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	defer tls.Close()
	tls.Config.ErrorLog = nil
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for _, row := range []struct{ name, url, want string }{
		{"nothing listens", "http://" + free, "connection refused"},
		{"an unknown authority", tls.URL, "unknown authority"},
		{"TLS to a plain port", strings.Replace(plain.URL, "http:", "https:", 1), "does not speak TLS"},
		{"no such host", "http://no-such-host.invalid", "cannot be resolved"},
	} {
		_, err := preflight(t, row.url, "k")
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v: does not say %q", row.name, err, row.want)
		}
	}
}

// What may pass by itself is asked again, and said; what will not is not.
func TestPreflightAsksAgainWhatMayPass(t *testing.T) {
	status := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error": {"message": "oops"}}`, status) }
	}
	w := wire.NewWriter(wire.For(wire.Chat), "x", "m", wire.Usage{}, wire.WriterOptions{Usage: true})
	body := w.Close(w.Text(w.Open(nil), "ready"), "stop", wire.Usage{Input: wire.N(9), Output: wire.N(1)})
	stream := func(cut int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write(body[:len(body)-cut])
		}
	}
	reset := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
	for _, row := range []struct {
		name  string
		fails []http.HandlerFunc // one after the other, before all is well
		asked int
		ok    bool
		said  string
	}{
		{"500 once → asked again", []http.HandlerFunc{status(500)}, 2, true, "try 1 of 4: status 500: oops"},
		{"503, 529 and 429 → asked again thrice", []http.HandlerFunc{status(503), status(529), status(429)}, 4, true, "try 3 of 4: status 429"},
		{"reset → asked again", []http.HandlerFunc{reset}, 2, true, "try 1 of 4: "},
		{"a cut stream → asked again", []http.HandlerFunc{stream(40)}, 2, true, "try 1 of 4: truncated"},
		{"500 for ever → the end", []http.HandlerFunc{status(500), status(500), status(500), status(500)}, 4, false, "try 3 of 4"},
		{"401 → the end at once", []http.HandlerFunc{status(401)}, 1, false, ""},
		{"403 → the end at once", []http.HandlerFunc{status(403)}, 1, false, ""},
		{"404 → the end at once", []http.HandlerFunc{status(404)}, 1, false, ""},
		{"400 → the end at once", []http.HandlerFunc{status(400)}, 1, false, ""},
		{"501 → the end at once", []http.HandlerFunc{status(501)}, 1, false, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			var asked atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := stream(0)
				if n := int(asked.Add(1)); n <= len(row.fails) {
					answer = row.fails[n-1]
				}
				answer(w, r)
			}))
			defer s.Close()
			m := decode(t, `{"load_model": {"name": "p", "model": "m", "scenarios": [{"id": "a", "weight": 1, "input_tokens": {"min": 50, "max": 60}, "output_tokens": {"min": 5, "max": 6}}], "target_qps": 1, "duration_seconds": 1}}`)
			r, _ := newRun(&endpoint{Server: s}, &Plan{Model: m})
			r.Target.Keys.OpenAI, r.backOff = "k", time.Microsecond
			var said []string
			r.OnRetry = func(text string) { said = append(said, text) }
			_, err := r.Preflight(t.Context())
			if (err == nil) != row.ok || int(asked.Load()) != row.asked || len(said) != row.asked-1 && row.ok {
				t.Errorf("asked %d times, said %q: %v", asked.Load(), said, err)
			}
			if got := strings.Join(said, "\n"); !strings.Contains(got, row.said) || row.said == "" && got != "" {
				t.Errorf("said %q, want %q", got, row.said)
			}
		})
	}
}

func preflight(t *testing.T, base string, key Secret) ([]string, error) {
	t.Helper()
	m := decode(t, `{"load_model": {"name": "p", "model": "m", "scenarios": [{"id": "a", "weight": 1, "input_tokens": {"min": 50, "max": 60}, "output_tokens": {"min": 5, "max": 6}}], "target_qps": 1, "duration_seconds": 1}}`)
	r, _ := newRun(&endpoint{Server: &httptest.Server{URL: base}}, &Plan{Model: m})
	r.Target.Keys.OpenAI = key
	r.backOff = time.Microsecond
	return r.Preflight(context.Background())
}
