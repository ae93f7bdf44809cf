package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/generator/sim"
	"weir/proxy"
	"weir/shaper"
	"weir/store"
	"weir/store/call"
	"weir/store/report"
)

// limited is a chain with an endpoint that hides a limit, and rules of ours.
func limited(t *testing.T, c sim.Config, rules ...string) *recording {
	t.Helper()
	s := newSim(t, c)
	endpoint := httptest.NewServer(s)
	t.Cleanup(func() { endpoint.Close(); s.Close() })
	target, err := url.Parse(endpoint.URL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := loopbackListener()
	if err != nil {
		t.Fatal(err)
	}
	r := record(t, l, []proxy.Upstream{{Name: "sim", URL: target}})
	var parsed []shaper.Rule
	for _, text := range rules {
		rule, err := shaper.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, rule)
	}
	if err := r.stack.shaper.Configure(parsed); err != nil {
		t.Fatal(err)
	}
	return r
}

// ask sends a request for a stream and gives its answer when it has begun.
func (r *recording) ask(t *testing.T, scenario string, tokens string) *http.Response {
	t.Helper()
	resp, err := http.Post(r.base+"/s/"+scenario+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"sim-small","stream":true,"max_tokens":`+tokens+`,"messages":[{"role":"user","content":"Say something."}]}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// all ends the chain and reports all its calls.
func (r *recording) report(t *testing.T) *report.Report {
	t.Helper()
	r.close()
	db, err := store.Open(t.Context(), r.path, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	got, err := summarise(t.Context(), db, []string{"all"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// What the report says of the onset of refusal is what the endpoint hid.
func TestTheHiddenLimitOfAnEndpointIsFound(t *testing.T) {
	const hidden = 6
	r := limited(t, sim.Config{HiddenLimit: hidden})
	var streams []*http.Response
	for range hidden {
		resp := r.ask(t, "work", "100000")
		if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d, %v", resp.StatusCode, err)
		}
		streams = append(streams, resp)
	}
	for range 3 {
		if resp := r.ask(t, "work", "1"); resp.StatusCode != http.StatusTooManyRequests {
			t.Fatalf("one more than the limit: status %d", resp.StatusCode)
		}
	}
	for _, s := range streams {
		s.Body.Close()
	}
	got := r.report(t)
	if len(got.Endpoints) != 1 {
		t.Fatalf("endpoints %+v", got.Endpoints)
	}
	e := got.Endpoints[0]
	if e.Upstream != "sim" || e.Model != "sim-small" || e.Calls != hidden || e.Refusals != 3 {
		t.Errorf("endpoint %+v", e)
	}
	if e.Onset == nil || e.Onset.Status != 429 || e.Onset.InFlight != report.N(hidden) || e.Passed.InFlight != report.N(hidden) {
		t.Errorf("onset %+v, passed %+v; want %d in flight", e.Onset, e.Passed, hidden)
	}
}

// A call that weir sent again is a refusal of the endpoint, and told as such.
func TestARefusalThatWeirMadeGoodIsReported(t *testing.T) {
	r := limited(t, sim.Config{HiddenLimit: 1}, "all retry=5")
	first := r.ask(t, "work", "100000")
	body := bufio.NewReader(first.Body)
	if _, err := body.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	begun := make(chan int, 1)
	go func() {
		resp, err := http.Post(r.base+"/s/work/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"sim-small","stream":true,"max_tokens":8,"messages":[{"role":"user","content":"Say something."}]}`))
		if err != nil {
			begun <- 0
			return
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body) // its end is in the store
		begun <- resp.StatusCode
	}()
	for r.lane("all").EndpointRefused == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	first.Body.Close()
	if status := <-begun; status != http.StatusOK {
		t.Fatalf("the call that was sent again: status %d", status)
	}
	got := r.report(t)
	e, s := got.Endpoints[0], got.Total.Shaping
	if s.Resent != 1 || s.Refusals < 1 || e.Refusals != s.Refusals || e.Onset == nil || e.Onset.Status != 429 || e.Onset.InFlight != report.N(1) {
		t.Errorf("shaping %+v, endpoint %+v, onset %+v", s, e, e.Onset)
	}
	if got.Total.Account.Attempts.V <= 0 || s.AttemptsShare.V <= 0 || s.QueueShare.V+s.AttemptsShare.V > 1 {
		t.Errorf("the account is %+v, and the shares %+v: nothing was spent on attempts", got.Total.Account, s)
	}
}

// lane is the state of one of weir's lanes.
func (r *recording) lane(name string) store.Lane {
	for _, l := range laneStates(r.stack.shaper) {
		if l.Name == name {
			return l
		}
	}
	return store.Lane{}
}

// What weir refuses itself is told by lane and limit, and is no word of the
// endpoint's.
func TestWeirsOwnRefusalsAreReported(t *testing.T) {
	r := limited(t, sim.Config{}, "scenario=slow rpm=1 wait=1s", "scenario=narrow concurrency=1 queue=none")
	for _, scenario := range []string{"slow", "narrow"} {
		resp := r.ask(t, scenario, "100000")
		if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if again := r.ask(t, scenario, "1"); again.StatusCode != http.StatusTooManyRequests {
			t.Fatalf("%s: status %d, want 429", scenario, again.StatusCode)
		}
		resp.Body.Close()
	}
	got := r.report(t)
	if e := got.Endpoints[0]; e.Onset != nil || e.Refusals != 0 {
		t.Errorf("endpoint %+v", e)
	}
	limits := map[string]string{}
	for _, f := range got.Failures {
		if f.Outcome != call.Refused {
			continue
		}
		limits[f.Lane] = f.Limit
		if waits := f.WouldWait.Known; waits != (f.Lane == "scenario=slow") {
			t.Errorf("%s would have waited %+v", f.Lane, f.WouldWait)
		}
		if f.Lane == "scenario=slow" && !(f.WouldWait.V > 1000 && f.WouldWait.V <= 60_000) {
			t.Errorf("it would have waited %v ms, want up to a minute", f.WouldWait.V)
		}
		if !strings.Contains(f.Next, "weir limit "+f.Lane+" ") {
			t.Errorf("advice %q does not name the lane %s", f.Next, f.Lane)
		}
	}
	if limits["scenario=slow"] != "requests" || limits["scenario=narrow"] != "in flight" {
		t.Errorf("limits %v", limits)
	}
}
