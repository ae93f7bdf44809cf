package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/proxy/wire"
	"weir/store/call"
	"weir/store/report"
)

// What a probe asks for, in so few tokens at most: OpenAI's Responses take no
// smaller limit.
const (
	probeText   = "Answer with the word ready."
	probeTokens = 16
)

// doctorScenario is the scenario of a probe that goes through weir.
const doctorScenario = "doctor"

var probeHeads = []string{"api", "status", "first token", "tokens", "verdict"}

// probed is one request to a model and what came of it.
type probed struct {
	call   *call.Call
	header http.Header // of the response; nil where none came
}

// spoken says whether an API is there, by the answer to a request that no
// model can answer.
func spoken(r *reply) bool {
	c := r.call
	switch {
	case c.Status == 0, c.Status >= 300 && c.Status < 400:
		return false
	case c.Status == 404, c.Status == 405, c.Status == 501:
		what, _ := c.Explain() // a model can be what is not found
		return strings.Contains(what, "The model")
	}
	return !isPage(r.body)
}

// dropped says whether the connection was closed on such a request, which says
// nothing of what a whole one would get.
func dropped(r *reply) bool { return r.call.Status == 0 && r.call.Outcome == call.Unreachable }

// knock sends half a JSON object to an API: whatever speaks it refuses it,
// which costs nothing.
func (v *visit) knock(ctx context.Context, api wire.API) *reply {
	u := joinBase(v.target, wire.For(api).Path(v.request(api, true)), api)
	return v.ask(ctx, http.MethodPost, u, api, v.keys.credential(api), "{")
}

// request is the small request of an API.
func (v *visit) request(api wire.API, usage bool) *wire.Request {
	r := &wire.Request{Head: wire.Head{Model: v.modelFor(api), Stream: true, MaxTokens: wire.N(probeTokens)}}
	if r.Model == "" {
		r.Model = "none" // Gemini has it in the path
	}
	if api == wire.Chat && usage {
		r.IncludeUsage = &usage
	}
	r.Messages = []wire.Message{{Role: wire.User, Parts: []wire.Part{{Kind: wire.KindText, Text: probeText}}}}
	return r
}

// speaks tells which APIs are there, for nothing.
func (v *visit) speaks(ctx context.Context) []report.Finding {
	var found []report.Finding
	any := false
	for _, api := range v.apis() {
		r := v.knock(ctx, api)
		f := report.Finding{Cells: []string{string(api), statusText(r.call.Status), "spoken"}}
		switch {
		case spoken(r) && r.call.Outcome == call.Auth:
			f.Mark = report.Bad
			f.What, f.Next = r.call.Explain()
		case spoken(r):
			any = true
		case dropped(r):
			any = true
			f.Mark, f.Cells[2] = report.Odd, "unclear"
			f.What, f.Next = "The endpoint closed the connection on a request that no model can answer.", "See what a whole one gets: weir doctor without --dry-run."
		default:
			f.Mark, f.Cells[2] = report.Skipped, "not spoken at "+r.call.Path
			if v.asked {
				f.Mark = report.Bad
			}
		}
		found = append(found, f)
	}
	return v.atLeastOne(found, any)
}

// atLeastOne makes a failure of it when no API at all is there.
func (v *visit) atLeastOne(found []report.Finding, any bool) []report.Finding {
	for _, f := range found {
		any = any || f.Mark != report.Skipped
	}
	if !any {
		found = append(found, report.Finding{Mark: report.Bad, Cells: []string{"none"}, What: "The endpoint speaks none of the APIs that weir measures.",
			Next: "Correct the base URL's path; weir passes other APIs on, but has no figures of them."})
	}
	return found
}

func statusText(status int) string {
	if status == 0 {
		return "–"
	}
	return strconv.Itoa(status)
}

// probe sends the small request of each API that is there.
func (v *visit) probe(ctx context.Context) []report.Finding {
	var there []wire.API
	var found []report.Finding
	for _, api := range v.apis() {
		switch r := v.knock(ctx, api); {
		case spoken(r), dropped(r):
			there = append(there, api)
		case v.asked:
			found = append(found, report.Finding{Mark: report.Bad, Cells: []string{string(api), statusText(r.call.Status), "–", "–", "not spoken"},
				What: "The endpoint has nothing at " + r.call.Path + ".", Next: "Use an API that it speaks: weir doctor without --api finds out which."})
		default:
			found = append(found, report.Finding{Mark: report.Skipped, Cells: []string{string(api), statusText(r.call.Status), "–", "–", "not spoken"}})
		}
	}
	if len(there) > 0 && v.modelFor(there[0]) == "" {
		return append([]report.Finding{{Mark: report.Bad, Cells: []string{"all", "–", "–", "–", "not asked"}, What: "No model is known to ask for.", Next: "Name one with --model."}}, found...)
	}
	if len(there) > 0 && ctx.Err() == nil {
		fmt.Fprintf(v.a.err, "sends %s of at most %d tokens to %s, and another where an answer is odd;\n--dry-run leaves them out\n",
			counted(len(there), "small request"), probeTokens, v.target.Host)
	}
	var asked []report.Finding
	works := wire.API("")
	for _, api := range there {
		if ctx.Err() != nil {
			return nil
		}
		f := v.try(ctx, api)
		if works == "" && f.Mark != report.Bad {
			works = api
		}
		asked = append(asked, f)
	}
	// An API that nobody asked for may fail where another works.
	for i := range asked {
		if asked[i].Mark == report.Bad && works != "" && !v.asked {
			asked[i].Mark = report.Odd
		}
	}
	bad := func(f report.Finding) bool { return f.Mark == report.Bad }
	v.works = works != "" && !slices.ContainsFunc(asked, bad) && !slices.ContainsFunc(found, bad)
	if works != "" && v.f.proxy != "" && v.f.upstream != "" {
		asked = append(asked, v.throughWeir(ctx, works))
	}
	return v.atLeastOne(append(asked, found...), false)
}

// try sends an API's request, and again where the first answer says how: with
// the key in another header, without the field that was refused, or to see
// whether the stream always comes at once.
func (v *visit) try(ctx context.Context, api wire.API) report.Finding {
	key := v.keys.credential(api)
	r := v.send(ctx, api, v.target, key, true)
	if r.call.Outcome == call.Auth && key.key != "" {
		other := key.otherwise()
		if again := v.send(ctx, api, v.target, other, true); again.call.Outcome != call.Auth {
			f := v.verdict(api, again)
			f.Mark = max(f.Mark, report.Odd)
			if f.Mark == report.Odd {
				f.What = fmt.Sprintf("The key is taken as %s, and refused as %s.", other.shown(), key.shown())
				f.Next = "Let clients send it so" + forClaude(api, other) + "."
			}
			return f
		}
	}
	if c := r.call; (c.Status == 400 || c.Status == 422) && strings.Contains(c.ErrorMessage+c.ErrorBody, "stream_options") {
		f := v.verdict(api, v.send(ctx, api, v.target, key, false))
		if f.Mark != report.Bad {
			f.Mark = report.Odd
			f.What, f.Next = c.Explain()
		}
		return f
	}
	if atOnce(r.call) && atOnce(v.send(ctx, api, v.target, key, true).call) {
		r.call.Gaps.Coalesced = true
	}
	f := v.verdict(api, r)
	if r.call.Outcome == call.Auth {
		f.What, f.Next = advised(r.call, key)
	}
	return f
}

// forClaude says what a header is for Claude Code's variables.
func forClaude(api wire.API, c credential) string {
	switch {
	case api != wire.Messages:
		return ""
	case c.header == "Authorization":
		return " (for Claude Code: ANTHROPIC_AUTH_TOKEN, not ANTHROPIC_API_KEY)"
	}
	return " (for Claude Code: ANTHROPIC_API_KEY, not ANTHROPIC_AUTH_TOKEN)"
}

// Of a stream that came at once, so many events with output arrived within so
// short a time. A machine that is busy can make it look so once.
const (
	atOnceEvents = 4
	atOnceWithin = time.Millisecond
)

func atOnce(c *call.Call) bool {
	return c.Outcome == call.OK && c.Streamed && c.TokenEvents >= atOnceEvents && time.Duration(c.LastToken.Received-c.FirstToken.Received) <= atOnceWithin
}

// throughWeir sends the request of an API that works directly through the weir
// that runs.
func (v *visit) throughWeir(ctx context.Context, api wire.API) report.Finding {
	base, _ := url.Parse(v.f.proxy) // which was parsed before
	r := v.send(ctx, api, base, v.keys.credential(api), true)
	f := v.verdict(api, r)
	f.Cells[0] += " by weir"
	if f.Mark == report.Bad {
		if r.call.Outcome == call.Unreachable {
			f.Next = "Start weir there: weir proxy --listen " + hostPort(base) + " --upstream " + v.target.String()
		} else {
			f.Next = "Directly it works, so see with what --upstream that weir was started; here it is " + v.target.String() + "."
		}
	}
	return f
}

// verdict judges a request's answer.
func (v *visit) verdict(api wire.API, r probed) report.Finding {
	c := r.call
	ttft, tokens := "–", "–"
	if d, ok := c.TTFTUpstream(); ok {
		ttft = tenths(d)
	}
	if u := c.Usage; u.Input.Known || u.Output.Known {
		tokens = countText(u.Input) + "→" + countText(u.Output)
	}
	f := report.Finding{Cells: []string{string(api), statusText(c.Status), ttft, tokens, "ok, " + c.Request.Model}}
	f.What, f.Next = c.Explain()
	switch {
	case c.Outcome != call.OK:
		f.Mark, f.Cells[4] = report.Bad, string(c.Outcome)
	case c.Request.Stream && !c.Streamed:
		f.Mark, f.Cells[4] = report.Bad, "not streamed"
	case c.NoFirstToken == call.AbsentEmpty && c.Finish != "" && c.Usage.Output.N >= probeTokens/2:
		f.Cells[4] += ", all of it hidden reasoning"
		f.What, f.Next = "", ""
	case f.What != "":
		f.Mark, f.Cells[4] = report.Odd, oddity(c)
	}
	if strings.Contains(f.What, "is not one that the endpoint has") && len(v.models) > 0 {
		f.Next = v.nearestModels(c.Request.Model)
	}
	if c.Outcome == call.RateLimited {
		for _, l := range call.Limits(r.header, time.Now()) {
			f.Notes = append(f.Notes, l.String())
		}
	}
	return f
}

// oddity is in a word or two what is odd about a call that is ok.
func oddity(c *call.Call) string {
	switch {
	case c.NoFirstToken != "":
		return "no token"
	case c.Gaps.Coalesced:
		return "buffered"
	}
	return "usage " + string(c.UsageSource)
}

func countText(n wire.Count) string {
	if !n.Known {
		return "–"
	}
	return strconv.FormatInt(n.N, 10)
}

// send asks a model and measures its answer as the proxy does.
func (v *visit) send(ctx context.Context, api wire.API, base *url.URL, key credential, usage bool) probed {
	ctx, cancel := context.WithTimeout(ctx, v.f.timeout)
	defer cancel()
	format, r := wire.For(api), v.request(api, usage)
	u := joinBase(base, format.Path(r), api)
	c := v.call(api, wire.OpChat, http.MethodPost, u)
	c.Request, c.Attempts = r.Head, 1
	if api == wire.Gemini {
		c.Operation = wire.OpGenerateContent
	}
	meter := call.NewMeter(c, format)
	body, err := format.AppendRequest(nil, r)
	if err != nil {
		meter.End(call.EndUnreachable, err, call.Now())
		return probed{call: c}
	}
	var seen wireTimes
	req, err := http.NewRequestWithContext(seen.watch(ctx), http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		meter.End(call.EndUnreachable, err, call.Now())
		return probed{call: c}
	}
	v.head(req, c, key)
	req.Header.Set("X-Weir-Scenario", doctorScenario)
	resp, err := v.transport.RoundTrip(req)
	if err != nil {
		how := call.EndUnreachable
		if ctx.Err() != nil {
			how = call.EndTimeout
		}
		meter.End(how, innermost(err), call.Now())
		return probed{call: c}
	}
	defer resp.Body.Close()
	headers := call.Now()
	c.Connected, c.Sent = seen.at(headers)
	meter.Begin(resp.StatusCode, resp.Header, headers)
	how, err := v.observe(ctx, resp.Body, meter)
	meter.End(how, err, call.Now())
	return probed{c, resp.Header}
}

// observe lets the meter see a body to its end.
func (v *visit) observe(ctx context.Context, body io.Reader, meter *call.Meter) (call.End, error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		meter.Observe(buf[:n], call.Now(), 0)
		switch {
		case errors.Is(err, io.EOF):
			return call.EndClean, nil
		case err != nil && ctx.Err() != nil:
			return call.EndTimeout, err
		case err != nil:
			return call.EndBroken, err
		}
	}
}

// wireTimes is when a request had its connection and was written, which the
// transport tells on goroutines of its own.
type wireTimes struct{ connected, wrote chan call.Instant }

func (s *wireTimes) watch(ctx context.Context) context.Context {
	s.connected, s.wrote = make(chan call.Instant, 1), make(chan call.Instant, 1)
	tell := func(to chan call.Instant) {
		select {
		case to <- call.Now():
		default: // a second attempt
		}
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { tell(s.connected) },
		WroteRequest: func(httptrace.WroteRequestInfo) { tell(s.wrote) },
	})
}

// at gives both; what is not known yet was when the answer began, at the latest.
func (s *wireTimes) at(headers call.Instant) (connected, wrote call.Instant) {
	take := func(from chan call.Instant) call.Instant {
		select {
		case at := <-from:
			return min(at, headers)
		default:
			return headers
		}
	}
	return take(s.connected), take(s.wrote)
}
