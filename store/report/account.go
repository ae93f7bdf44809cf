package report

import (
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"weir/store/call"
)

// Explain writes one call for people: what it was, its time as bars that add
// up, its instants, how its events came, and what it used. other is the call
// as the other side saw it; nil when only one did.
func Explain(w io.Writer, c, other *call.Call, s Style) {
	accountHead(w, c, s)
	fmt.Fprintln(w)
	if parts, ok := c.Account(); ok {
		bars(w, parts, s)
		ofWhich(w, c, s)
	} else if c.Side == call.Imported {
		total, known := c.Duration()
		fmt.Fprintf(w, "total %s; the program that made this span does not say of which parts\n", duration(total, known))
	} else {
		fmt.Fprintln(w, "in flight: the account is drawn when it has ended")
	}
	fmt.Fprintln(w)
	instants(w, c, s)
	fmt.Fprintln(w)
	accountFigures(w, c, s)
	arrivals(w, c.Timeline, s)
	if other != nil {
		otherView(w, c, other)
	}
	failed(w, c, s)
}

func accountHead(w io.Writer, c *call.Call, s Style) {
	line := func(parts ...string) {
		parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
		if len(parts) > 0 {
			fmt.Fprintln(w, strings.Join(parts, "   "))
		}
	}
	outcome := s.paintOutcome(c, outcomeText(c))
	status := ""
	if c.Status != 0 {
		status = "HTTP " + statusText(c.Outcome, c.Status)
	}
	line(purposeNoun(c)+" "+SpanText(c), "seen by the "+sideText(c.Side), startText(c), outcome, status)
	line(labelled("scenario", c.Scenario, paren(c.ScenarioFrom)), labelled("run", c.Run, ""),
		labelled("session", c.Session, ""), labelled("turn", positive(c.Turn), ""), labelled("for", purposeText(c), ""),
		thinkText(c), plain(allLabels(c)))
	host := c.Host
	if c.Port != 0 {
		host = fmt.Sprintf("%s:%d", host, c.Port)
	}
	impaired := "impaired on purpose:"
	if !c.Worsened() {
		impaired = "to be impaired on purpose:"
	}
	line(labelled(impaired, strings.Join(c.Impaired, ", "), ""))
	line(strings.TrimSpace(string(c.API)+" "+plain(c.Request.Model)), servedAs(c), strings.TrimSpace(plain(c.Method+" "+c.Path)),
		labelled("→", c.Upstream, paren(host)))
	line(labelled("from", c.ClientName+" "+c.ClientVersion, ""), labelled("key", c.KeyFingerprint, ""), labelled("response", c.ResponseID, ""))
}

// purposeNoun says what is shown, where it is more than a call or less.
func purposeNoun(c *call.Call) string {
	switch c.Purpose {
	case call.PurposeConnection:
		return "connection, which carries calls and is none,"
	case call.PurposePrewarm:
		return "prewarm, which asks for no answer,"
	}
	return "call"
}

// purposeText is what a call is for where that is not plain.
func purposeText(c *call.Call) string {
	if c.Purpose == "main" {
		return ""
	}
	return strings.TrimSpace(c.Purpose + " " + c.Agent)
}

var thinkers = map[string]string{"tools": "tools", "user": "the user"}

// thinkText is what went on between the call before and this one.
func thinkText(c *call.Call) string {
	if c.ThinkFor == "" {
		return ""
	}
	return duration(c.Think, true) + " after the answer before, for " + thinkers[c.ThinkFor]
}

// SpanText is the id by which a call is asked for.
func SpanText(c *call.Call) string { return hex.EncodeToString(c.SpanID[:]) }

func sideText(s call.Side) string {
	if s == call.Client {
		return "generator"
	}
	return string(s)
}

// startText is when a call began, in local time.
func startText(c *call.Call) string {
	if !c.Arrived.Reached() {
		return ""
	}
	return c.Arrived.Time().Local().Format("2006-01-02 15:04:05.000")
}

func servedAs(c *call.Call) string {
	if c.ServedModel == "" || c.ServedModel == c.Request.Model {
		return ""
	}
	return "served as " + plain(c.ServedModel)
}

func labelled(label, value, after string) string {
	value = strings.TrimSpace(plain(value))
	if value == "" {
		return ""
	}
	return strings.TrimSpace(label + " " + value + " " + after)
}

func paren(s string) string {
	if s == "" {
		return ""
	}
	return "(" + plain(s) + ")"
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// bars draws the parts below each other, each from where the one before ended.
func bars(w io.Writer, p call.Parts, s Style) {
	parts := []struct {
		name string
		d    time.Duration
	}{{"read", p.Read}, {"queue", p.Queue}, {"attempts", p.Attempts}, {"connect", p.Connect}, {"send", p.Send},
		{"wait", p.Wait}, {"generate", p.Generate}, {"tail", p.Tail}}
	var total time.Duration
	for _, part := range parts {
		total += part.d
	}
	columns := max(min(s.columns()-22, 80), 20)
	at := time.Duration(0)
	column := func(d time.Duration) int {
		if total == 0 {
			return 0
		}
		return int(float64(columns) * float64(d) / float64(total))
	}
	for _, part := range parts {
		if part.name == "attempts" && part.d == 0 {
			continue // the first one was answered, as nearly always
		}
		from, to := column(at), column(at+part.d)
		at += part.d
		bar := strings.Repeat("█", to-from)
		if part.d > 0 && bar == "" {
			bar = "▏"
			from = min(from, columns-1)
		}
		line := fmt.Sprintf("%-9s %9s  %s%s", part.name, duration(part.d, true), strings.Repeat(" ", from), bar)
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	fmt.Fprintf(w, "%-9s %9s\n", "total", duration(total, true))
}

// ofWhich are the times that overlap the parts and are never added to them.
func ofWhich(w io.Writer, c *call.Call, s Style) {
	var shown []string
	for _, o := range []struct {
		name string
		d    time.Duration
	}{{"dns", c.DNS}, {"tls", c.TLS}, {"writes to the client", c.WriteBlocked}, {"injected delay", c.Injected}} {
		if o.d > 0 {
			shown = append(shown, o.name+" "+duration(o.d, true))
		}
	}
	if len(shown) > 0 {
		fmt.Fprintln(w, s.paint(faint, "of which  "+strings.Join(shown, ", ")))
	}
}

// instants lists what was reached, counted from the arrival.
func instants(w io.Writer, c *call.Call, s Style) {
	zero := c.Arrived
	t := &table{columns: []column{{head: "instant", left: true}, {head: "after arrival"}, {head: "delivered"}}}
	after := func(i call.Instant) string {
		if !i.Reached() {
			return ""
		}
		return exact(time.Duration(i - zero))
	}
	one := func(name string, i call.Instant) {
		if i.Reached() {
			t.add(name, after(i), "")
		}
	}
	two := func(name string, m call.Mark) {
		if m.Reached() {
			t.add(name, after(m.Received), after(m.Delivered))
		}
	}
	one("due", c.Due)
	one("arrived", c.Arrived)
	one("body", c.Body)
	one("admitted", c.Admitted)
	one("again", c.Again)
	one("connected", c.Connected)
	one("sent", c.Sent)
	one("headers", c.Headers)
	two("first_byte", c.FirstByte)
	two("first_event", c.FirstEvent)
	two("first_token", c.FirstToken)
	two("first_reasoning", c.FirstReasoning)
	two("first_text", c.FirstText)
	two("first_tool", c.FirstTool)
	two("last_token", c.LastToken)
	one("done", c.Done)
	t.text(w, func(row, _ int, cell string) string {
		if row == -1 {
			return s.paint(faint, cell)
		}
		return cell
	})
}

// exact writes an instant with its microseconds.
func exact(d time.Duration) string {
	return fmt.Sprintf("%.3fms", float64(d)/float64(time.Millisecond))
}

func accountFigures(w io.Writer, c *call.Call, s Style) {
	line := func(name, format string, a ...any) {
		fmt.Fprintf(w, "%-9s %s\n", name, fmt.Sprintf(format, a...))
	}
	switch {
	case c.FirstToken.Reached():
		felt, ok := c.TTFTFelt()
		up, upOK := c.TTFTUpstream()
		text := fmt.Sprintf("felt %s, upstream %s", duration(felt, ok), duration(up, upOK))
		if d, ok := c.TTFTResponse(); ok {
			text += ", from due " + duration(d, ok)
		}
		line("ttft", "%s", text)
	case c.NoFirstToken != "":
		line("ttft", "%s: %s", absent, c.NoFirstToken)
	}
	tpot, ok := c.TPOT()
	line("tpot", "%s", duration(tpot, ok))
	u := c.Usage
	tokens := absent
	if u.Input.Known || u.Output.Known {
		tokens = known(u.Input.N, u.Input.Known) + "→" + known(u.Output.N, u.Output.Known)
	}
	if u.CacheRead.Known {
		tokens += fmt.Sprintf(", %d read from cache", u.CacheRead.N)
	}
	if u.CacheWrite.Known && u.CacheWrite.N > 0 {
		tokens += fmt.Sprintf(", %d written to cache", u.CacheWrite.N)
	}
	if u.Reasoning.Known && u.Reasoning.N > 0 {
		tokens += fmt.Sprintf(", %d of reasoning", u.Reasoning.N)
	}
	if c.UsageSource != "" {
		tokens += " (" + string(c.UsageSource) + ")"
	}
	line("tokens", "%s", tokens)
	for _, l := range laneLines(c) {
		line(l[0], "%s", l[1])
	}
	if c.Streamed {
		line("events", "%d, %d with output", c.Events, c.TokenEvents)
	}
	if g := c.Gaps; g.N > 0 {
		text := fmt.Sprintf("p50 %s, p99 %s, longest %s", duration(g.P50, true), duration(g.P99, true), duration(g.Longest, true))
		if g.Stalls > 0 {
			text += s.paint(yellow, fmt.Sprintf(", ! %s of %s", count(g.Stalls, "stall"), duration(g.Stalled, true)))
		}
		if g.Coalesced {
			text += s.paint(yellow, ", ! coalesced")
		}
		line("gaps", "%s", text)
	}
	if c.Finish != "" {
		line("finish", "%s", plain(c.Finish))
	}
}

func known(n int64, ok bool) string {
	if !ok {
		return absent
	}
	return fmt.Sprint(n)
}

// otherView sets the two measurements beside each other.
func otherView(w io.Writer, c, other *call.Call) {
	felt, ok := other.TTFTFelt()
	total, done := other.Duration()
	fmt.Fprintf(w, "%-9s ttft %s, total %s (%s)\n", sideText(other.Side)[:min(9, len(sideText(other.Side)))],
		duration(felt, ok), duration(total, done), SpanText(other))
}

// failed says what happened to a call that failed or is odd, what to do next,
// and what the provider said.
func failed(w io.Writer, c *call.Call, s Style) {
	what, next := c.Explain()
	if what != "" {
		mark := s.paint(red, "✗ ")
		if c.Outcome == call.OK {
			mark = s.paint(yellow, "! ")
		}
		fmt.Fprintln(w)
		advise(w, mark, what, next, 2, s)
	}
	if c.Outcome == call.OK || c.Outcome == "" {
		return
	}
	said := strings.TrimSpace(plain(c.ErrorType + " " + strings.TrimPrefix(c.ErrorMessage, c.ErrorType+": ")))
	if said != "" || c.RetryAfter > 0 || c.ErrorBody != "" {
		fmt.Fprintln(w)
	}
	if said != "" {
		fmt.Fprintf(w, "%-9s %s\n", "said", said)
	}
	if c.RetryAfter > 0 {
		fmt.Fprintf(w, "%-9s after %s\n", "retry", c.RetryAfter)
	}
	if c.ErrorBody != "" && c.ErrorBody != c.ErrorMessage {
		fmt.Fprintf(w, "%-9s %s\n", "body", clip(plain(c.ErrorBody), 4*s.columns()))
	}
}
