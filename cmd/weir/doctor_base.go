package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"weir/proxy"
	"weir/proxy/wire"
	"weir/store/call"
	"weir/store/report"
)

// otherBases are where gateways put an API that people look for elsewhere.
var otherBases = []string{"", "/api", "/openai", "/anthropic"}

// joinBase puts an API's path, as weir knows it, behind a base, as weir's proxy
// does.
func joinBase(base *url.URL, target string, api wire.API) *url.URL {
	u := *base
	p, query, _ := strings.Cut(target, "?")
	route := wire.Route{API: api, Operation: wire.OpModels}
	if p == "/models" { // looked for without a version, which is then not added
		route.Operation = wire.OpOther
	}
	joined, _ := proxy.JoinPath(base, p, route)
	u.Path, u.RawPath, u.RawQuery = joined, "", query
	if plain, err := url.PathUnescape(joined); err == nil {
		u.Path, u.RawPath = plain, joined
	}
	return &u
}

// withPath is a URL with another path.
func withPath(base *url.URL, p string) *url.URL {
	u := *base
	u.Path, u.RawPath, u.RawQuery = p, "", ""
	return &u
}

// what an answer says of the place that was asked.
type place uint8

const (
	nothing place = iota // no API is there
	guarded              // one is, and it wants another key
	lists                // it lists its models
	failing              // something is, and it does not work
)

// listing is a place where the models were asked for.
type listing struct {
	base   *url.URL
	reply  *reply
	key    credential
	place  place
	models []string
}

// locate finds the API below the endpoint's address: where it should be, and
// if it is not there, where it usually is. Then it looks at the clock, the key
// and the models.
func (v *visit) locate(ctx context.Context) (found []report.Finding, ok bool) {
	first := v.list(ctx, v.target, "/v1/models")
	if first.reply.call.Status == 0 {
		what, next := first.reply.call.Explain()
		return []report.Finding{{Mark: report.Bad, Cells: []string{"request", first.reply.call.ErrorType}, What: what, Next: next}}, false
	}
	if c := first.reply.call; c.Status == http.StatusBadRequest && strings.Contains(strings.ToLower(c.ErrorBody), "https") {
		what, next := c.Explain()
		return []report.Finding{{Mark: report.Bad, Cells: []string{"request", statusText(c.Status)}, What: what, Next: next}}, false
	}
	found = append(found, v.clock(first.reply)...)
	if status := first.reply.call.Status; status >= 300 && status < 400 {
		return append(found, v.redirected(first.reply)), false
	}
	at := first
	if at.place == nothing {
		at = v.elsewhere(ctx, first)
	}
	switch {
	case at.place == nothing && v.anyAPI(ctx):
		found = append(found, report.Finding{Mark: report.Odd, Cells: []string{"base path", "no list of models"},
			What: "APIs answer here, but none lists its models.", Next: "Name the model with --model."})
		return found, true
	case at.place == nothing:
		return append(found, v.nowhere(first)), false
	case at.base.Path != v.target.Path && !sameBase(at.base, v.target):
		f := report.Finding{Mark: report.Bad, Cells: []string{"base path", fmt.Sprintf("nothing at %s, an API at %s", first.reply.call.Path, at.reply.call.Path)},
			What: "The base URL leads past the API, which is at " + at.base.String() + ".", Next: "Use --upstream " + at.base.String() + " (what follows was found there)."}
		v.target = at.base
		found = append(found, f)
	}
	more, ok := v.judge(at)
	return append(found, more...), ok
}

// sameBase says whether weir makes the same paths of both bases.
func sameBase(a, b *url.URL) bool {
	return a.Host == b.Host && joinBase(a, "/v1/models", "").Path == joinBase(b, "/v1/models", "").Path
}

// list asks for the models below a base, with each kind of key that there is
// until one is taken.
func (v *visit) list(ctx context.Context, base *url.URL, target string) listing {
	l := listing{base: base}
	u := joinBase(base, target, "")
	if strings.HasPrefix(target, "/v1beta/") {
		u = joinBase(base, target, wire.Gemini)
	}
	tried := map[credential]bool{}
	for _, api := range v.apis() {
		key := v.keys.credential(api)
		if key.key == "" {
			key.header = ""
		}
		if tried[key] {
			continue
		}
		tried[key] = true
		r := v.ask(ctx, http.MethodGet, u, api, key, "")
		place, models := readModels(r)
		if l.reply == nil || place > l.place {
			l.reply, l.key, l.place, l.models = r, key, place, models
		}
		if place != guarded {
			break
		}
	}
	return l
}

// readModels says what an answer to GET models means, and which it names.
func readModels(r *reply) (place, []string) {
	status := r.call.Status
	switch {
	case status == 200:
		if models := modelNames(r.body); models != nil {
			return lists, models
		}
		return nothing, nil
	case status >= 500 && status != 501, status == 429:
		return failing, nil
	case isPage(r.body):
		return nothing, nil
	case status == 401, status == 403, status == 400 && strings.Contains(strings.ToLower(string(r.body)), "api key"):
		return guarded, nil
	}
	return nothing, nil
}

// isPage says whether a body is a web page.
func isPage(body []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) }

// modelNames reads a list of models in any dialect, or the bare list of some
// gateways; nil when it is none.
func modelNames(body []byte) []string {
	type model struct {
		ID      string   `json:"id"`
		Name    string   `json:"name"`
		Methods []string `json:"supportedGenerationMethods"`
	}
	var list struct {
		Data   *[]model `json:"data"`
		Models *[]model `json:"models"`
	}
	var all []model
	switch {
	case json.Unmarshal(body, &list) == nil && list.Data != nil:
		all = *list.Data
	case list.Models != nil:
		all = *list.Models
	case json.Unmarshal(body, &all) != nil:
		return nil
	}
	names := []string{}
	for _, m := range all {
		name := m.ID
		if name == "" {
			name = strings.TrimPrefix(m.Name, "models/")
		}
		if name != "" && (m.Methods == nil || strings.Contains(strings.Join(m.Methods, " "), "generateContent")) {
			names = append(names, name)
		}
	}
	return names
}

// elsewhere looks for the API where it usually is.
func (v *visit) elsewhere(ctx context.Context, first listing) listing {
	base := strings.TrimRight(v.target.Path, "/")
	without := versionEnd.ReplaceAllString(base, "")
	try := func(p, target string) (listing, bool) {
		l := v.list(ctx, withPath(v.target, p), target)
		return l, l.place == lists || l.place == guarded
	}
	// The same base, with the version of another API or none.
	if l, ok := try(base, "/v1beta/models"); ok {
		l.base = v.target
		return l
	}
	if l, ok := try(without, "/models"); ok && !versionEnd.MatchString(base) {
		l.base = v.target
		return l
	}
	if without != base {
		if l, ok := try(without, "/v1/models"); ok {
			return l
		}
	}
	for _, other := range otherBases {
		if other == without {
			continue
		}
		if l, ok := try(other, "/v1/models"); ok {
			return l
		}
	}
	return first
}

// anyAPI says whether any API answers below the base.
func (v *visit) anyAPI(ctx context.Context) bool {
	for _, api := range v.apis() {
		if spoken(v.knock(ctx, api)) {
			return true
		}
	}
	return false
}

// nowhere says that there is no API, and what there is.
func (v *visit) nowhere(first listing) report.Finding {
	c := first.reply.call
	f := report.Finding{Mark: report.Bad, Cells: []string{"base path", fmt.Sprintf("%s %s: status %d", c.Method, c.Path, c.Status)}}
	f.Next = "Look the base URL up in the endpoint's documentation; also tried: with and without /v1, " + strings.Join(otherBases[1:], ", ") + "."
	switch {
	case c.Outcome == call.Auth:
		f.What, f.Next = c.Explain()
		return f
	case isPage(first.reply.body):
		f.What = "A web page answers there, and no API was found: the address is that of a site."
		return f
	}
	f.What = "No API was found below " + v.target.String() + "."
	return f
}

// redirected says where the endpoint sends requests.
func (v *visit) redirected(r *reply) report.Finding {
	what, next := fmt.Sprintf("The endpoint sends requests elsewhere (status %d), and weir does not follow.", r.call.Status), "Ask its operator for the address that it means."
	if to, err := v.target.Parse(r.header.Get("Location")); err == nil && to.Host != "" {
		to.RawQuery, to.User, to.Fragment = "", nil, ""
		to.Path = strings.TrimSuffix(strings.TrimSuffix(to.Path, "/models"), "/v1")
		next = "Use --upstream " + to.String()
	}
	return report.Finding{Mark: report.Bad, Cells: []string{"base path", r.call.Method + " " + r.call.Path}, What: what, Next: next}
}

// mostSkew is how far clocks may be apart.
const mostSkew = time.Minute

// clock holds the endpoint's clock against this machine's.
func (v *visit) clock(r *reply) []report.Finding {
	if !r.dated {
		return nil
	}
	apart := r.skew.Abs()
	if apart <= mostSkew {
		return []report.Finding{{Cells: []string{"clock", "less than a minute apart"}}}
	}
	how := "behind"
	if r.skew < 0 {
		how = "before"
	}
	return []report.Finding{{Mark: report.Odd, Cells: []string{"clock", fmt.Sprintf("%s apart", apart.Round(time.Second))},
		What: fmt.Sprintf("This machine's clock is %s %s the endpoint's.", apart.Round(time.Minute), how),
		Next: "Set it right (timedatectl set-ntp true): logins, certificates and rate limits go by it."}}
}

// judge tells of the place where the API is: its path, the key, the models.
func (v *visit) judge(at listing) (found []report.Finding, ok bool) {
	c := at.reply.call
	where := report.Finding{Cells: []string{"base path", fmt.Sprintf("%s %s answers", c.Method, c.Path)}}
	switch at.place {
	case failing:
		what, next := c.Explain()
		return []report.Finding{where, {Mark: report.Odd, Cells: []string{"models", fmt.Sprintf("status %d", c.Status)}, What: what, Next: next}}, true
	case guarded:
		what, next := advised(c, at.key)
		cell := "none was sent"
		if at.key.key != "" {
			cell = "$" + at.key.variable + ", sent as " + at.key.shown()
		}
		// A key may be one that lists no models; without any, all is refused.
		return []report.Finding{where, {Mark: report.Bad, Cells: []string{"key", cell}, What: what, Next: next}}, at.key.key != "" && v.f.model != ""
	}
	v.models = at.models
	key := report.Finding{Cells: []string{"key", "none was sent; the list of models wants none"}}
	if at.key.key != "" {
		key.Cells[1] = "$" + at.key.variable + ", sent as " + at.key.shown()
	}
	return []report.Finding{where, key, v.modelFinding()}, true
}
