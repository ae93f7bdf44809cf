package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhichTraceTheUpstreamIsToldOf(t *testing.T) {
	const caller = "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-"
	var got *http.Request
	up := upstreamOf(t, func(_ http.ResponseWriter, r *http.Request) { got = r })
	for _, row := range []struct {
		name        string
		propagation Propagation
		flags       string // of the caller's trace; empty: it has none
		want        string // traceparent with the span's id as SPAN
	}{
		{"nothing said → none", "", "01", ""},
		{"strip → none", PropagateStrip, "01", ""},
		{"pass → the caller's", PropagatePass, "01", caller + "01"},
		{"pass without a caller's → none", PropagatePass, "", ""},
		{"replace → weir's span in the caller's trace", PropagateReplace, "01", "00-0102030405060708090a0b0c0d0e0f10-SPAN-01"},
		{"replace, sampled out by the caller → stays so", PropagateReplace, "00", "00-0102030405060708090a0b0c0d0e0f10-SPAN-00"},
		{"replace without a caller's → weir's own", PropagateReplace, "", "00-TRACE-SPAN-01"},
	} {
		s := start(t, up, func(p *Proxy) { p.Propagate = row.propagation })
		req, err := http.NewRequest("POST", s.url+"/v1/messages", strings.NewReader(`{"model":"m"}`))
		if err != nil {
			t.Fatal(err)
		}
		if row.flags != "" {
			req.Header.Set("Traceparent", caller+row.flags)
			req.Header.Set("Tracestate", "a=b,c=d")
		}
		req.Header.Set("Baggage", "user=alice")
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		c := s.call(t, 1)
		want := strings.NewReplacer("SPAN", fmt.Sprintf("%x", c.SpanID[:]), "TRACE", fmt.Sprintf("%x", c.TraceID[:])).Replace(row.want)
		if v := got.Header.Get("Traceparent"); v != want {
			t.Errorf("%s: the upstream was told %q, want %q", row.name, v, want)
		}
		state := ""
		if want != "" && row.flags != "" {
			state = "a=b,c=d"
		}
		if v := got.Header.Get("Tracestate"); v != state {
			t.Errorf("%s: the state is %q, want %q", row.name, v, state)
		}
		if got.Header.Get("Baggage") != "" {
			t.Errorf("%s: baggage reached the upstream", row.name)
		}
		if row.flags != "" && (c.TraceState != "a=b,c=d" || c.ParentSpan != [8]byte{1, 2, 3, 4, 5, 6, 7, 8}) {
			t.Errorf("%s: the call's own state is %q, its parent %x", row.name, c.TraceState, c.ParentSpan)
		}
	}
}

func TestBaggageBecomesLabels(t *testing.T) {
	up := upstreamOf(t, func(http.ResponseWriter, *http.Request) {})
	s := start(t, up, func(p *Proxy) { p.BaggageLabels = []string{"team", "user", "long", "none"} })
	for i, row := range []struct {
		name, baggage, label string
		want                 map[string]string
	}{
		{"chosen members → labels", "team=search%20infra;p=1, user=alice,secret=x", "", map[string]string{"team": "search infra", "user": "alice"}},
		{"a label of the same name → the label's", "team=search", "team=mine", map[string]string{"team": "mine"}},
		{"too long → none", "long=" + strings.Repeat("x", 257), "", nil},
		{"not to be read → none", "team", "", nil},
		{"no baggage → none", "", "", nil},
	} {
		req, err := http.NewRequest("POST", s.url+"/v1/messages", strings.NewReader(`{"model":"m"}`))
		if err != nil {
			t.Fatal(err)
		}
		if row.baggage != "" {
			req.Header.Set("Baggage", row.baggage)
		}
		if row.label != "" {
			req.Header.Set(headerLabel, row.label)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if d := cmp.Diff(row.want, s.call(t, i+1).Labels); d != "" {
			t.Errorf("%s:\n%s", row.name, d)
		}
	}
}
