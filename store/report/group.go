package report

import (
	"time"

	"weir/store/call"
)

// group gathers the calls of one row. It keeps the latencies, and of
// everything else only sums.
type group struct {
	values    []string
	calls, ok int
	impaired  bool

	felt, upstream, response, service []time.Duration
	tpot, queued, toLast, toDone      []time.Duration

	input, output             mean // of successful calls
	inputSum, outputSum       mean // of all calls
	cacheRead, cacheableInput int64
	eventOutput, tokenEvents  int64
	sources                   map[string]int

	stalledCalls, stalls, coalesced, notStreamed int
	stalled                                      time.Duration
	views                                        Views
	shaping                                      shapingSums

	parts    call.Parts
	accounts int
}

// mean adds up counts that may be unknown.
type mean struct{ sum, n int64 }

func (m *mean) add(v int64) { m.sum += v; m.n++ }

func (m mean) mean() Num { return share(m.sum, m.n) }

func (m mean) total() Num {
	if m.n == 0 {
		return Num{}
	}
	return N(float64(m.sum))
}

func (g *group) add(p pair) {
	g.calls++
	c := p.lead()
	g.addUsage(c)
	g.shaping.add(c)
	if u := c.Usage; u.Input.Known {
		g.inputSum.add(u.Input.N)
	}
	if u := c.Usage; u.Output.Known {
		g.outputSum.add(u.Output.N)
	}
	if p.outcome() != call.OK {
		return
	}
	g.ok++
	g.addLatencies(p)
	g.addStream(c)
	if u := c.Usage; u.Input.Known {
		g.input.add(u.Input.N)
	}
	if u := c.Usage; u.Output.Known {
		g.output.add(u.Output.N)
	}
	if parts, ok := c.Account(); ok {
		g.accounts++
		g.parts.Read += parts.Read
		g.parts.Queue += parts.Queue
		g.parts.Attempts += parts.Attempts
		g.parts.Connect += parts.Connect
		g.parts.Send += parts.Send
		g.parts.Wait += parts.Wait
		g.parts.Generate += parts.Generate
		g.parts.Tail += parts.Tail
	}
}

// addUsage counts where a call's usage comes from, whatever became of it: what
// is in the sums must not stand there without its doubt.
func (g *group) addUsage(c *call.Call) {
	if c.UsageSource != "" {
		if g.sources == nil {
			g.sources = map[string]int{}
		}
		g.sources[string(c.UsageSource)]++
	}
	if u := c.Usage; u.Input.Known && u.CacheRead.Known && u.CacheRead.N <= u.Input.N {
		g.cacheRead += u.CacheRead.N
		g.cacheableInput += u.Input.N
	}
}

func (g *group) addLatencies(p pair) {
	keep := func(to *[]time.Duration, d time.Duration, ok bool) {
		if ok {
			*to = append(*to, d)
		}
	}
	if c := p.proxy; c != nil {
		d, ok := c.TTFTFelt()
		keep(&g.felt, d, ok)
		d, ok = c.TTFTUpstream()
		keep(&g.upstream, d, ok)
		g.shaping.addTTFT(c)
		d, ok = queued(c)
		keep(&g.queued, d, ok)
	}
	if c := p.client; c != nil {
		d, ok := c.TTFTResponse()
		keep(&g.response, d, ok)
		d, ok = c.TTFTFelt()
		keep(&g.service, d, ok)
	}
	c := p.lead()
	d, ok := c.TPOT()
	keep(&g.tpot, d, ok)
	d, ok = c.ToLastToken()
	keep(&g.toLast, d, ok)
	d, ok = c.Duration()
	keep(&g.toDone, d, ok)
	g.compareViews(p)
}

// compareViews holds the proxy's TTFT against the client's, over the same way:
// from the connection in the client's hand, which is when the proxy can first
// see the request, to the first token in the client's hand, which is when the
// proxy has delivered it.
func (g *group) compareViews(p pair) {
	if p.proxy == nil || p.client == nil {
		return
	}
	proxy, ok := p.proxy.TTFTFelt()
	from := p.client.Connected
	if !from.Reached() {
		from = p.client.Arrived
	}
	if !ok || !from.Reached() || !p.client.FirstToken.Reached() {
		return
	}
	client := time.Duration(p.client.FirstToken.Received - from)
	apart := (client - proxy).Abs()
	g.views.Both++
	if apart > 2*time.Millisecond+max(client, proxy)/50 {
		g.views.Differ++
	}
	if d := Ms(apart); !g.views.Worst.Known || d.V > g.views.Worst.V {
		g.views.Worst = d
	}
}

func (g *group) addStream(c *call.Call) {
	if !c.Streamed {
		if !c.StreamUnknown() {
			g.notStreamed++
		}
		return
	}
	if c.Usage.Output.Known && c.TokenEvents > 0 {
		g.eventOutput += c.Usage.Output.N
		g.tokenEvents += c.TokenEvents
	}
	if c.Gaps.Stalls > 0 {
		g.stalledCalls++
		g.stalls += c.Gaps.Stalls
		g.stalled += c.Gaps.Stalled
	}
	if c.Gaps.Coalesced {
		g.coalesced++
	}
}

// row turns what was gathered into figures.
func (g *group) row() Row {
	r := Row{
		Group: g.values, Impaired: g.impaired, Calls: g.calls, OK: g.ok, Share: share(int64(g.ok), int64(g.calls)),
		TTFTFelt: summarise(g.felt), TTFTUpstream: summarise(g.upstream),
		TTFTResponse: summarise(g.response), TTFTService: summarise(g.service),
		TPOT: summarise(g.tpot), Queued: summarise(g.queued), Shaping: g.shaping.figures(),
		ToLastToken: summarise(g.toLast), ToDone: summarise(g.toDone),
		Tokens: Tokens{
			InputMean: g.input.mean(), OutputMean: g.output.mean(),
			Input: g.inputSum.total(), Output: g.outputSum.total(),
			CacheReadShare: share(g.cacheRead, g.cacheableInput), Sources: g.sources,
		},
		Stream: Stream{
			TokensPerEvent: share(g.eventOutput, g.tokenEvents),
			Stalled:        g.stalledCalls, Stalls: g.stalls, StalledTime: Ms(g.stalled),
			Coalesced: g.coalesced, NotStreamed: g.notStreamed,
		},
		Views: g.views,
	}
	if r.Tokens.Sources == nil {
		r.Tokens.Sources = map[string]int{}
	}
	if n := g.accounts; n > 0 {
		part := func(d time.Duration) Num { return Ms(d / time.Duration(n)) }
		r.Account = Account{
			Read: part(g.parts.Read), Queue: part(g.parts.Queue), Attempts: part(g.parts.Attempts), Connect: part(g.parts.Connect), Send: part(g.parts.Send),
			Wait: part(g.parts.Wait), Generate: part(g.parts.Generate), Tail: part(g.parts.Tail),
		}
	}
	return r
}
