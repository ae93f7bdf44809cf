package proxy

import (
	"net/http"
	"strings"
	"time"

	"weir/generator/loadmodel"
	"weir/proxy/client"
	"weir/proxy/wire"
	"weir/store/call"
)

// describe fills in who calls, for what, and where it goes.
func (x *exchange) describe() {
	c, r := x.c, x.r
	c.ClientName, c.ClientVersion = client.Identify(r.Header)
	x.chooseUpstream()
	x.chooseKey()
	if x.up != nil {
		c.Upstream = x.up.Name
		c.Host, c.Port = x.up.address()
	}
	c.Provider = provider(c.Host, c.API)
	if upgradeOf(r.Header) != "" {
		c.Purpose = call.PurposeConnection
		if c.Session == "" {
			c.Session, c.SessionFrom = client.Session(r.Header, &c.Request)
		} else {
			c.SessionFrom = fromWeir
		}
	} else {
		x.place(r.Header, false)
	}
	if c.Scenario == "" {
		x.nameScenario()
	}
}

const fromWeir = "weir" // a session that X-Weir-Session names

// place finds the session and the turn that the call belongs to, and what the
// client makes it for.
func (x *exchange) place(h http.Header, prewarm bool) {
	if x.unseen {
		return
	}
	c := x.c
	x.at = x.p.sessions.Place(&client.Request{
		Client: c.ClientName, API: c.API, Operation: c.Operation, Header: h, Head: &c.Request, Shape: x.shape, Prewarm: prewarm,
		Caller: x.caller(), Tag: strings.Trim(c.Scenario+"/"+c.Run, "/"), Arrived: time.Duration(c.Arrived), Session: c.Session, Turn: c.Turn,
	})
	x.placed = true
	x.shape = wire.Shape{} // a stream may be open for minutes, and a history is long
	c.Session, c.SessionFrom, c.Turn, c.Purpose, c.Agent = x.at.Session, x.at.From, x.at.Turn, x.at.Purpose, x.at.Agent
	c.Think, c.ThinkFor = x.at.Think, x.at.ThinkFor
}

// chooseUpstream finds where the call goes.
func (x *exchange) chooseUpstream() {
	if x.origin != nil {
		var elsewhere bool
		x.up, elsewhere = x.p.forward.route(x.origin)
		x.verbatim = !elsewhere
		return
	}
	c := x.c
	if x.up, x.path = choose(x.p.upstreams, x.path, c.Request.Model); x.up == nil {
		return
	}
	if x.partly && astray(x.up, c.Request.Model) {
		x.up = nil
		return
	}
	// The prefix of an upstream may stand before the tags.
	scenario, run, rest := pathTags(x.path)
	x.path = rest
	if c.Scenario == "" && scenario != "" {
		c.Scenario, c.ScenarioFrom = scenario, "path"
	}
	if c.Run == "" {
		c.Run = run
	}
}

// chooseKey takes one of weir's own keys, if it holds any.
func (x *exchange) chooseKey() {
	x.secret = NewSecret(keyOf(x.r))
	if x.up != nil {
		if x.key = x.up.keyring.take(); x.key != nil {
			x.secret = x.key.secret
		}
	}
	x.tellKey()
}

// tellKey tells the key that is sent from others.
func (x *exchange) tellKey() {
	if x.p.Fingerprint != nil && x.secret != (Secret{}) {
		x.c.KeyFingerprint = x.p.Fingerprint(x.secret.reveal())
	}
}

// nameScenario names a call by the rules, or by default.
func (x *exchange) nameScenario() {
	c := x.c
	if x.p.Match != nil {
		scenario, ok := x.p.Match(loadmodel.Facts{
			Model: c.Request.Model, API: string(c.API), Client: c.ClientName, Path: c.Path, Session: c.Session, Purpose: c.Purpose,
			InputTokens: int(x.estimate()), Turns: c.Request.TurnCount, Tools: c.Request.ToolCount, Stream: c.Request.Stream,
		})
		if ok {
			c.Scenario, c.ScenarioFrom = scenario, "rule"
			return
		}
	}
	c.Scenario, c.ScenarioFrom = x.p.Tagged(), "default"
	if c.Scenario == untagged && c.Operation.Generates() && c.Request.MessageCount > 0 {
		c.Scenario, c.ScenarioFrom = classify(c, x.estimate()), automatic
	}
}

// provider is the conventions' name for who serves the upstream, by its host;
// an unknown host is named by the dialect it speaks.
func provider(host string, api wire.API) string {
	for _, known := range []struct{ part, name string }{
		{"openai.azure.com", "azure.ai.openai"}, {"openai.com", "openai"}, {"anthropic.com", "anthropic"},
		{"aiplatform.googleapis.com", "gcp.vertex_ai"}, {"googleapis.com", "gcp.gemini"}, {"deepseek.com", "deepseek"},
		{"mistral.ai", "mistral_ai"}, {"groq.com", "groq"}, {"x.ai", "x_ai"}, {"perplexity.ai", "perplexity"},
	} {
		if host == known.part || strings.HasSuffix(host, "."+known.part) {
			return known.name
		}
	}
	switch api {
	case wire.Messages:
		return "anthropic"
	case wire.Gemini:
		return "gcp.gemini"
	}
	return "openai"
}
