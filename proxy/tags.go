package proxy

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The headers by which a request says what it belongs to. None of them, and
// nothing else that begins like them, reaches the upstream.
const (
	headerPrefix   = "X-Weir-"
	headerScenario = "X-Weir-Scenario"
	headerRun      = "X-Weir-Run"
	headerSession  = "X-Weir-Session"
	headerTurn     = "X-Weir-Turn"
	headerWarmUp   = "X-Weir-Warm-Up"
	headerLabel    = "X-Weir-Label"
	headerToken    = "X-Weir-Token"
)

// tags are what a request says it belongs to.
type tags struct {
	scenario, from string
	run, session   string
	turn           int
	warmUp         bool
	labels         map[string]string
}

// readTags reads the tags of a request and gives its path, escaped, without
// the prefix that holds some of them.
func readTags(h http.Header, escaped string) (t tags, rest string) {
	t.scenario, t.run, rest = pathTags(escaped)
	if t.scenario != "" {
		t.from = "path"
	}
	if name := ScenarioName(h.Get(headerScenario)); name != "" {
		t.scenario, t.from = name, "header"
	}
	if run := h.Get(headerRun); run != "" {
		t.run = run
	}
	t.session = h.Get(headerSession)
	t.turn, _ = strconv.Atoi(h.Get(headerTurn))
	t.warmUp, _ = strconv.ParseBool(h.Get(headerWarmUp))
	for _, pair := range h.Values(headerLabel) {
		key, value, _ := strings.Cut(pair, "=")
		if key = strings.TrimSpace(key); key == "" {
			continue
		}
		if t.labels == nil {
			t.labels = map[string]string{}
		}
		t.labels[key] = strings.TrimSpace(value)
	}
	return t, rest
}

// pathTags takes the tags off a path's beginning: /s/<scenario>, /r/<run>, or
// one after the other. What does not stand there is empty.
func pathTags(escaped string) (scenario, run, rest string) {
	rest = escaped
	if plain, after, ok := tagged(rest, "/s/"); ok {
		if scenario = ScenarioName(plain); scenario != "" {
			rest = after
		}
	}
	if plain, after, ok := tagged(rest, "/r/"); ok && runID.MatchString(plain) {
		run, rest = plain, after
	}
	return scenario, run, rest
}

// tagged takes a mark and the segment behind it off a path.
func tagged(escaped, mark string) (plain, rest string, ok bool) {
	after, ok := strings.CutPrefix(escaped, mark)
	if !ok {
		return "", escaped, false
	}
	segment, rest, _ := strings.Cut(after, "/")
	plain, err := url.PathUnescape(segment)
	return plain, "/" + rest, err == nil
}

// runID is what a run in a path looks like; other paths that begin like one
// are the upstream's.
var runID = regexp.MustCompile(`^[0-9A-Za-z._-]{1,64}$`)

const longestScenario = 64

// ScenarioName makes a scenario's id of what a request says: letters and digits
// of any script in lower case, dots, dashes and underscores. A call is never
// lost for its name: other characters become dashes.
func ScenarioName(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if len(s) > longestScenario {
		end := longestScenario
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end]
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '.', r == '-', r == '_', r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r)):
			return r
		}
		return '-'
	}, s)
}

// hopByHop are the headers that belong to one connection.
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// dropHopByHop removes the headers of one connection, those that Connection
// names among them. TE: trailers may pass on: it is what the other end must
// know to send trailers.
func dropHopByHop(h http.Header) {
	trailers := strings.Contains(strings.ToLower(h.Get("Te")), "trailers")
	for _, line := range h["Connection"] {
		for _, name := range strings.Split(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
	if trailers {
		h.Set("Te", "trailers")
	}
}

// traceHeaders carry the trace of the caller, which is not the upstream's.
var traceHeaders = []string{"Traceparent", "Tracestate", "Baggage"}

// outgoing are the headers that go on to the upstream.
func outgoing(h http.Header) http.Header {
	out := h.Clone()
	dropHopByHop(out)
	for name := range out {
		if strings.HasPrefix(name, headerPrefix) {
			delete(out, name)
		}
	}
	for _, name := range traceHeaders {
		delete(out, name)
	}
	if _, said := out["User-Agent"]; !said {
		out["User-Agent"] = nil // or net/http would write its own
	}
	return out
}
