package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/generator/sim"
)

// consulted is what a doctor said.
type consulted struct {
	out, err string
	code     int
}

// consult runs weir doctor in an environment of its own.
func consult(t *testing.T, vars map[string]string, args ...string) consulted {
	t.Helper()
	home := t.TempDir()
	env := func(name string) (string, bool) {
		if name == "XDG_DATA_HOME" || name == "HOME" {
			return home, true
		}
		v, set := vars[name]
		return v, set
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code := run(ctx, ctx, append([]string{"doctor"}, args...), stdio{strings.NewReader(""), &out, &errs}, env)
	for name, v := range vars {
		if strings.HasSuffix(name, "KEY") && len(v) > 8 && strings.Contains(out.String()+errs.String(), v[3:]) {
			t.Errorf("the key of %s is shown:\n%s%s", name, &out, &errs)
		}
	}
	return consulted{out.String(), errs.String(), code}
}

// spaces are as many as the columns need.
var spaces = regexp.MustCompile(` {2,}`)

// want checks the exit code, and that each of the texts was said.
func (c consulted) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if c.code != code {
		t.Errorf("exit code %d, want %d", c.code, code)
	}
	said := spaces.ReplaceAllString(c.out, " ")
	for _, text := range texts {
		if !strings.Contains(said, spaces.ReplaceAllString(text, " ")) {
			t.Errorf("not said: %q", text)
		}
	}
	if t.Failed() {
		t.Logf("it said:\n%s%s", c.out, c.err)
	}
}

// serveSim serves a simulated endpoint through what wraps it, and gives its
// address.
func serveSim(t *testing.T, c sim.Config, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	endpoint, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	var h http.Handler = endpoint
	if wrap != nil {
		h = wrap(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.Close()
		endpoint.Close()
	})
	return s.URL
}

func handle(h http.HandlerFunc) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler { return h }
}

// slowly makes steps so long that events do not come together by chance.
func slowly() sim.EngineConfig {
	e, _ := sim.Preset("small")
	e.Step = 40 * time.Millisecond
	return e
}

const page = "<!DOCTYPE html><html><head><title>Welcome</title></head><body></body></html>"

// gathering answers whole what was to be a stream of the handler behind it.
func gathering(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		w.Write(rec.Body.Bytes())
	})
}

func TestDoctorOnEndpoints(t *testing.T) {
	const secret = "sk-gateway-0123456789abcdef"
	key := map[string]string{"GATEWAY_KEY": secret}
	models := []string{"big-1", "sim-mini", "text-embed-1"}
	for _, row := range []struct {
		sentence string
		sim      sim.Config
		wrap     func(http.Handler) http.Handler
		path     string // behind the address
		vars     map[string]string
		args     []string
		code     int
		says     []string
	}{
		{"a healthy endpoint", sim.Config{Engine: slowly(), Models: models}, nil, "", nil, nil, 0,
			[]string{"✓ tcp ", "✓ clock ", "✓ base path  GET /v1/models answers", "✓ models     3 listed", "✓ chat ", "✓ responses ", "✓ messages ", "✓ gemini ", "ok, sim-mini", "✓ nothing is wrong"}},
		{"a base with its version", sim.Config{Engine: slowly(), Models: models}, nil, "/v1", nil, nil, 0, []string{"✓ gemini ", "✓ nothing is wrong"}},
		{"a key that is right", sim.Config{Engine: slowly(), Models: models, Key: secret}, nil, "", key, []string{"--key-env", "GATEWAY_KEY"}, 0,
			[]string{"✓ GATEWAY_KEY  set, 27 characters", "✓ key        $GATEWAY_KEY, sent as Authorization: Bearer", "✓ messages ", "✓ gemini "}},
		{"a key that is wrong", sim.Config{Models: models, Key: "another"}, nil, "", key, []string{"--key-env", "GATEWAY_KEY"}, 1,
			[]string{"✗ key        $GATEWAY_KEY", "The key was refused", "whether GATEWAY_KEY holds a key"}},
		{"a key that is wrong, and a model named", sim.Config{Models: models, Key: "another"}, nil, "", key, []string{"--key-env", "GATEWAY_KEY", "--model", "sim-mini"}, 1,
			[]string{"✗ key        $GATEWAY_KEY", "✗ chat 401", "✗ gemini 401"}},
		{"no key", sim.Config{Models: models, Key: secret}, nil, "", nil, nil, 1, []string{"✗ key        none was sent", "→ "}},
		{"an unknown model", sim.Config{Models: models}, nil, "", nil, []string{"--model", "sim-mine"}, 1,
			[]string{"! models     3 listed", `"sim-mine" is not among them.`, "→ The nearest are sim-mini, big-1, text-embed-1.", "✗ chat          404"}},
		{"never any usage", sim.Config{Engine: slowly(), Models: models, NoUsage: true}, nil, "", nil, nil, 0,
			[]string{"! chat          200", "usage missing", "The request asked for token usage, but the stream ended without it.", "The endpoint reported no token usage, or only its beginning."}},
		{"something buffers", sim.Config{Models: models}, gathering, "", nil, []string{"--api", "chat"}, 0, []string{"! chat          200", "buffered", "something on the way buffers it", "proxy_buffering"}},
		{"a clock that is off by an hour", sim.Config{Engine: slowly(), Models: models}, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
				h.ServeHTTP(w, r)
			})
		}, "", nil, nil, 0, []string{"! clock ", "This machine's clock is 1h0m0s behind the endpoint's.", "what matters works"}},
		{"the API is below /api", sim.Config{Engine: slowly(), Models: models}, func(h http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle("/api/", http.StripPrefix("/api", h))
			return m
		}, "", nil, nil, 1, []string{"✗ base path  nothing at /v1/models, an API at /api/v1/models", "/api (what follows was found there).", "✓ chat "}},
		{"the API is not below the path given", sim.Config{Engine: slowly(), Models: models}, func(h http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle("/v1/", h)
			return m
		}, "/openai/v1", nil, nil, 1, []string{"✗ base path  nothing at /openai/v1/models, an API at /v1/models", "✓ chat "}},
		{"a web site", sim.Config{}, handle(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, page)
		}), "", nil, nil, 1, []string{"✗ base path  GET /v1/models: status 200", "A web page answers there"}},
		{"nothing but 404s", sim.Config{}, handle(http.NotFound), "", nil, nil, 1, []string{"✗ base path  GET /v1/models: status 404", "No API was found below http://127.0.0.1:"}},
		{"an empty list of models", sim.Config{}, emptyList, "", nil, nil, 1, []string{"✗ models 0 listed", "and none is named"}},
		{"an empty list of models, and one named", sim.Config{Engine: slowly()}, emptyList, "", nil, []string{"--model", "m"}, 0, []string{"– models 0 listed", "✓ chat 200"}},
		{"a redirect", sim.Config{}, handle(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/api"+r.URL.Path, http.StatusPermanentRedirect)
		}), "", nil, nil, 1, []string{"sends requests elsewhere (status 308)", "→ Use --upstream https://elsewhere.example/api"}},
		{"no list of models, and one named", sim.Config{Engine: slowly()}, func(h http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle("/v1/chat/completions", h)
			return m
		}, "", nil, []string{"--model", "m"}, 0, []string{"! base path  no list of models", "✓ chat ", "– responses     404", "– gemini "}},
		{"no list of models, and none named", sim.Config{}, func(h http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle("/v1/chat/completions", h)
			return m
		}, "", nil, nil, 1, []string{"✗ all", "No model is known to ask for."}},
		{"half a request is met with silence", sim.Config{Engine: slowly(), Models: models}, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if string(body) == "{" {
					panic(http.ErrAbortHandler)
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				h.ServeHTTP(w, r)
			})
		}, "", nil, []string{"--api", "chat"}, 0, []string{"✓ chat          200"}},
		{"the one model that is listed is refused", sim.Config{Models: []string{"m-mini"}}, func(h http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle("/", h)
			m.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(404)
				io.WriteString(w, `{"error":{"message":"The model m-mini does not exist","type":"invalid_request_error","code":"model_not_found"}}`)
			})
			return m
		}, "", nil, []string{"--api", "chat"}, 1, []string{"The endpoint lists it, and no other"}},
		{"an API that must work and is not there", sim.Config{Engine: slowly(), Models: models}, func(h http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle("/v1/chat/completions", h)
			m.Handle("/v1/models", h)
			return m
		}, "", nil, []string{"--api", "chat,messages"}, 1, []string{"✓ chat ", "✗ messages      404", "nothing at /v1/messages"}},
		{"one API fails beside one that works", sim.Config{Engine: slowly(), Models: models}, func(h http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle("/", h)
			m.HandleFunc("/v1/responses", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(500)
				io.WriteString(w, `{"error":{"message":"not implemented here","type":"server_error"}}`)
			})
			return m
		}, "", nil, nil, 0, []string{"✓ chat ", "! responses     500", "not implemented here"}},
		{"200 without choices", sim.Config{Models: models}, func(h http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle("/", h)
			m.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, `{"id":"x","object":"chat.completion"}`)
			})
			return m
		}, "", nil, []string{"--api", "chat"}, 1, []string{"✗ chat          200", "malformed", `lacks the "choices"`}},
		{"a stream that is none", sim.Config{Models: models}, func(h http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle("/", h)
			m.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, `{"id":"x","choices":[{"message":{"content":"ready"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`)
			})
			return m
		}, "", nil, []string{"--api", "chat"}, 1, []string{"✗ chat          200", "not streamed", "the answer came whole"}},
		{"a rate limit", sim.Config{Models: models, Faults: []sim.Fault{{Kind: "429", Share: 1, Wait: 20 * time.Second}}}, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Ratelimit-Limit-Requests", "60")
				w.Header().Set("X-Ratelimit-Remaining-Requests", "0")
				w.Header().Set("X-Ratelimit-Reset-Requests", "1m30s")
				h.ServeHTTP(w, r)
			})
		}, "", nil, []string{"--api", "chat"}, 1, []string{"✗ chat          429", "requests: 0 of 60 left, resets in 1m30s", "the endpoint asks to wait 20s"}},
		{"stream_options are refused", sim.Config{Engine: slowly(), Models: models}, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if bytes.Contains(body, []byte("stream_options")) {
					w.WriteHeader(422)
					io.WriteString(w, `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`)
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				h.ServeHTTP(w, r)
			})
		}, "", nil, []string{"--api", "chat"}, 0, []string{"! chat          200", "does not take the field stream_options"}},
		{"the key is wanted in another header", sim.Config{Engine: slowly(), Models: models}, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+secret {
					w.WriteHeader(401)
					io.WriteString(w, `{"type":"error","error":{"type":"authentication_error","message":"no key"}}`)
					return
				}
				h.ServeHTTP(w, r)
			})
		}, "", key, []string{"--key-env", "GATEWAY_KEY", "--api", "chat,messages"}, 0,
			[]string{"✓ chat ", "! messages      200", "taken as Authorization: Bearer, and refused as x-api-key", "ANTHROPIC_AUTH_TOKEN, not ANTHROPIC_API_KEY"}},
		{"a gateway that fails", sim.Config{Models: models, Faults: []sim.Fault{{Kind: "529", Share: 1}}}, nil, "", nil, nil, 1, []string{"✗ chat          529", "is overloaded"}},
		{"streams that break", sim.Config{Models: models, Faults: []sim.Fault{{Kind: "cut", Share: 1}}}, nil, "", nil, []string{"--api", "messages"}, 1, []string{"✗ messages      200", "truncated", "The stream broke off"}},
		{"nobody is at --proxy", sim.Config{Engine: slowly(), Models: models}, nil, "", nil, []string{"--api", "chat", "--proxy", "http://127.0.0.1:1"}, 1,
			[]string{"✓ chat ", "✗ chat by weir", "Nothing listens at 127.0.0.1:1", "weir proxy --listen 127.0.0.1:1 --upstream http://127.0.0.1:"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			t.Parallel()
			address := serveSim(t, row.sim, row.wrap)
			consult(t, row.vars, append([]string{"--upstream", address + row.path}, row.args...)...).want(t, row.code, row.says...)
		})
	}
}

func TestDoctorOnAPortWhereNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	got := consult(t, nil, "--upstream", "http://"+l.Addr().String())
	got.want(t, 1, "✗ tcp  connection_refused", "Nothing listens at "+l.Addr().String(), "→ Start the endpoint")
	if !strings.Contains(got.err, "weir: doctor: 1 thing does not work") {
		t.Error(got.err)
	}
}

// emptyList has every model, and lists none.
func emptyList(h http.Handler) http.Handler {
	m := http.NewServeMux()
	m.Handle("/", h)
	m.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"object":"list","data":[]}`) })
	return m
}

func TestDoctorOnAnEndpointThatHangs(t *testing.T) {
	address := serveSim(t, sim.Config{}, handle(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	consult(t, nil, "--upstream", address, "--timeout", "50ms").want(t, 1, "✗ request", "did not begin to answer in time")
}

func TestDoctorIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	env := func(name string) (string, bool) { return map[string]string{"HOME": t.TempDir()}[name], name == "HOME" }
	var out bytes.Buffer
	if code := run(ctx, ctx, []string{"doctor", "--upstream", "http://127.0.0.1:1"}, stdio{strings.NewReader(""), &out, &out}, env); code != exitInterrupted {
		t.Errorf("exit code %d, want %d:\n%s", code, exitInterrupted, &out)
	}
}

func TestDoctorByAProxyOnTheWay(t *testing.T) {
	way := serveSim(t, sim.Config{Engine: slowly(), Models: []string{"sim"}}, nil)
	consult(t, nil, "--upstream", "http://endpoint.invalid", "--upstream-proxy", way).want(t, 0, "– connection by "+way, "✓ base path", "✓ chat ", "✓ gemini ")
	consult(t, nil, "--upstream", "http://endpoint.invalid", "--upstream-proxy", "http://127.0.0.1:1").want(t, 1, "✗ request", "The proxy on the way to endpoint.invalid:80 cannot be used.")
}

// Anthropic's endpoint lists its models only to who names a version of its API.
func TestDoctorNamesAnthropicsVersion(t *testing.T) {
	const key = "sk-ant-api03-0123456789abcdef"
	address := serveSim(t, sim.Config{Engine: slowly(), Models: []string{"claude-mini"}, Key: key}, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Anthropic-Version") == "" {
				w.WriteHeader(400)
				io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"anthropic-version: header is required"}}`)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	consult(t, map[string]string{"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": address}, "--upstream", address, "--api", "messages").
		want(t, 0, "✓ key $ANTHROPIC_API_KEY, sent as x-api-key", "✓ models 1 listed", "✓ messages 200")
}

// A dry run, and a run that cannot work, send nothing that a model answers.
func TestDoctorSendsNothingThatCostsBeforeItMust(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	counting := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if bytes.Contains(body, []byte(probeText)) {
				mu.Lock()
				asked++
				mu.Unlock()
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			h.ServeHTTP(w, r)
		})
	}
	address := serveSim(t, sim.Config{Engine: slowly(), Models: []string{"sim"}}, counting)
	dry := consult(t, nil, "--upstream", address, "--dry-run")
	dry.want(t, 0, "what it speaks", "✓ chat          400  spoken", "✓ gemini        400  spoken")
	if asked != 0 || strings.Contains(dry.err, "sends") {
		t.Errorf("a dry run asked %d times", asked)
	}
	wet := consult(t, nil, "--upstream", address)
	if asked != 4 || !strings.Contains(wet.err, "sends 4 small requests of at most 16 tokens to 127.0.0.1:") {
		t.Errorf("asked %d times, said %q", asked, wet.err)
	}
	consult(t, nil, "--upstream", serveSim(t, sim.Config{Key: "sk-secret"}, counting)).want(t, 1, "✗ key")
	if asked != 4 {
		t.Errorf("asked %d times without a key", asked)
	}
}

// Keys go to their own provider, to where their own base URL leads, or where
// --key-env says; a key of nobody's form goes anywhere.
func TestDoctorKeepsKeysFromOthers(t *testing.T) {
	const claude, openai = "sk-ant-api03-0123456789abcdef", "sk-0123456789abcdef0123"
	var mu sync.Mutex
	seen := map[string]bool{}
	watching := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
				if v := r.Header.Get(name); v != "" {
					seen[name+" "+v] = true
				}
			}
			mu.Unlock()
			h.ServeHTTP(w, r)
		})
	}
	address := serveSim(t, sim.Config{Engine: slowly(), Models: []string{"sim"}}, watching)
	for _, row := range []struct {
		sentence string
		vars     map[string]string
		args     []string
		sent     []string
		held     bool
	}{
		{"Anthropic's stays", map[string]string{"ANTHROPIC_API_KEY": claude}, nil, nil, true},
		{"unless its base URL leads there", map[string]string{"ANTHROPIC_API_KEY": claude, "ANTHROPIC_BASE_URL": address}, []string{"--api", "messages"}, []string{"X-Api-Key " + claude}, false},
		{"or it is named", map[string]string{"ANTHROPIC_API_KEY": claude}, []string{"--key-env", "ANTHROPIC_API_KEY", "--api", "messages"}, []string{"X-Api-Key " + claude}, false},
		{"a key of nobody's form goes out as each API wants it", map[string]string{"OPENAI_API_KEY": openai}, []string{"--api", "chat,messages,gemini"},
			[]string{"Authorization Bearer " + openai, "X-Api-Key " + openai, "X-Goog-Api-Key " + openai}, false},
		{"what surrounds a key is left out", map[string]string{"OPENAI_API_KEY": "\"" + openai + "\"\n"}, []string{"--api", "chat"}, []string{"Authorization Bearer " + openai}, false},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			clear(seen)
			got := consult(t, row.vars, append([]string{"--upstream", address}, row.args...)...)
			for _, s := range row.sent {
				if !seen[s] {
					t.Errorf("not sent: %s", s)
				}
			}
			if len(seen) != len(row.sent) {
				t.Errorf("sent %v", seen)
			}
			if row.held != strings.Contains(got.out, "– ANTHROPIC_API_KEY  not sent") {
				t.Errorf("held %v:\n%s", row.held, got.out)
			}
		})
	}
	w := wallet{env: func(name string) (string, bool) {
		return map[string]string{"OPENAI_API_KEY": openai, "ANTHROPIC_API_KEY": claude}[name], true
	}, target: mustURL(t, "https://api.anthropic.com")}
	if c := w.credential("messages"); string(c.key) != claude || c.header != "X-Api-Key" {
		t.Errorf("Anthropic gets the key of %s as %s", c.variable, c.header)
	}
	w.target = mustURL(t, "https://api.openai.com/v1")
	if c := w.credential("messages"); c.variable == "ANTHROPIC_API_KEY" {
		t.Error("OpenAI would get Anthropic's key")
	}
}
