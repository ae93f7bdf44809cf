package shaper

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Impairment makes a share of some calls worse on purpose, in one way.
type Impairment struct {
	Select Selector // values are names or globs; Each is none
	Kind   ImpairmentKind
	Share  float64 // of the calls, 0 to 1

	// What the kind takes; the others are zero.
	Event  EventRange // of a stream, counted by those that hold output, from 1
	Time   TimeDist
	Number float64 // events, bytes or pings
}

// ImpairmentKind is a way in which a call is made worse.
type ImpairmentKind string

// The kinds.
const (
	SlowFirstToken  ImpairmentKind = "first_token"
	SlowTokens      ImpairmentKind = "pace"
	Stall           ImpairmentKind = "stall"
	Cut             ImpairmentKind = "cut"
	CutInRune       ImpairmentKind = "cut_rune"
	Reset           ImpairmentKind = "reset"
	Bandwidth       ImpairmentKind = "bandwidth"
	Coalesce        ImpairmentKind = "coalesce"
	ErrorEvent      ImpairmentKind = "error"
	Pings           ImpairmentKind = "pings"
	PingsThroughout ImpairmentKind = "pings_throughout"
	NoUsage         ImpairmentKind = "no_usage"
	RateLimited     ImpairmentKind = "429"
	ServerError     ImpairmentKind = "500"
	Overloaded      ImpairmentKind = "529"
)

// taking says whether a kind takes a parameter.
type taking uint8

const (
	takesNone taking = iota
	mayTake
	mustTake
)

// impairmentKind is what is known of a kind.
type impairmentKind struct {
	kind                ImpairmentKind
	form, what          string
	number, event, wait taking
	least, most         float64    // of the number
	impairment          Impairment // what is not said
}

const secondEvent = 2 // an answer has begun, and is not over

var impairmentKinds = []impairmentKind{
	{kind: SlowFirstToken, form: "first_token+TIME", what: "the first token comes so much later", wait: mustTake},
	{kind: SlowTokens, form: "pace=N", what: "at most N events with output a second", number: mustTake, least: 0.001, most: 1e6},
	{kind: Stall, form: "stall@K+TIME", what: "a pause before event K", event: mayTake, wait: mustTake, impairment: Impairment{Event: EventRange{secondEvent, secondEvent}}},
	{kind: Cut, form: "cut@K", what: "the connection breaks inside event K", event: mayTake, impairment: Impairment{Event: EventRange{secondEvent, secondEvent}}},
	{kind: CutInRune, form: "cut_rune@K", what: "it breaks inside a UTF-8 character, in event K or later", event: mayTake, impairment: Impairment{Event: EventRange{secondEvent, secondEvent}}},
	{kind: Reset, form: "reset, reset@K", what: "the connection is reset: at once, without asking the endpoint, or before event K", event: mayTake},
	{kind: Bandwidth, form: "bandwidth=N", what: "at most N bytes a second", number: mustTake, least: 1, most: 1e12},
	{kind: Coalesce, form: "coalesce=N+TIME", what: "N events, or those within TIME, or whichever is less, are written as one", number: mayTake, wait: mayTake, least: 2, most: 10_000},
	{kind: ErrorEvent, form: "error@K", what: "an error inside the 200, in the place of event K", event: mayTake, impairment: Impairment{Event: EventRange{secondEvent, secondEvent}}},
	{kind: Pings, form: "pings=N", what: "N pings a second until the first token comes", number: mustTake, least: 0.001, most: 10_000},
	{kind: PingsThroughout, form: "pings_throughout=N", what: "N pings a second until the end", number: mustTake, least: 0.001, most: 10_000},
	{kind: NoUsage, form: "no_usage", what: "token usage is taken out of the answer"},
	{kind: RateLimited, form: "429+TIME", what: "refused by weir without asking the endpoint, with Retry-After (default 1s)", wait: mayTake, impairment: Impairment{Time: TimeDist{Low: time.Second, High: time.Second}}},
	{kind: ServerError, form: "500", what: "a server error, likewise"},
	{kind: Overloaded, form: "529", what: "overloaded, likewise"},
}

func kindNamed(name string) *impairmentKind {
	for i := range impairmentKinds {
		if string(impairmentKinds[i].kind) == name {
			return &impairmentKinds[i]
		}
	}
	return nil
}

func kindNames() string {
	var names []string
	for _, k := range impairmentKinds {
		names = append(names, string(k.kind))
	}
	return strings.Join(names, ", ")
}

// ImpairmentHelp describes the impairments, a line each.
func ImpairmentHelp() string {
	var b strings.Builder
	for _, k := range impairmentKinds {
		fmt.Fprintf(&b, "%-18s %s\n", k.form, k.what)
	}
	return b.String()
}

// EventRange are the events from which one is drawn. The zero EventRange is no
// event.
type EventRange struct{ First, Last int }

// String is the impairment as ParseImpairments reads it:
// "scenario=agent: cut@2:1%".
func (m Impairment) String() string {
	var b strings.Builder
	if m.Select != (Selector{}) {
		b.WriteString(m.Select.String() + ": ")
	}
	b.WriteString(string(m.Kind))
	if m.Number != 0 {
		b.WriteString("=" + float(m.Number))
	}
	if m.Event != (EventRange{}) {
		b.WriteString("@" + m.Event.String())
	}
	if m.Time != (TimeDist{}) {
		b.WriteString("+" + m.Time.String())
	}
	if m.Share != 1 {
		b.WriteString(":" + strconv.FormatFloat(m.Share*100, 'g', 12, 64) + "%")
	}
	return b.String()
}

// speaksOf says whether a selector without Each is true of a call.
func (s *Selector) speaksOf(a *Ask) bool {
	for _, f := range facets {
		if want := *f.want(s); want != "" {
			if ok, err := fits(want, f.got(a)); err != nil || !ok {
				return false
			}
		}
	}
	return true
}

// Harm is an impairment that befalls one call, with all chances drawn.
type Harm struct {
	Kind   ImpairmentKind
	Event  int // 0: the kind takes none, or it comes at once
	Time   time.Duration
	Number float64
}

// String is the harm as a span has it: "first_token+800ms", "cut@7".
func (h Harm) String() string {
	return Impairment{Kind: h.Kind, Share: 1, Number: h.Number, Event: EventRange{h.Event, h.Event}, Time: TimeDist{Low: h.Time, High: h.Time}}.String()
}

// Impairer says what befalls which call. It is made by NewImpairer and used by
// many at a time.
type Impairer struct {
	impairments atomic.Pointer[[]Impairment]
	seed        uint64

	mu    sync.Mutex
	calls map[string]uint64 // so far, by scenario
}

// mostScenarios are told apart by their calls; those that come later are
// counted together.
const mostScenarios = 10_000

// NewImpairer makes an Impairer of what ParseImpairments gave. Equal seeds
// choose the same calls.
func NewImpairer(impairments []Impairment, seed uint64) *Impairer {
	p := &Impairer{seed: seed, calls: map[string]uint64{}}
	p.Configure(impairments)
	return p
}

// Configure gives other impairments to the calls that come from now on.
func (p *Impairer) Configure(impairments []Impairment) { p.impairments.Store(&impairments) }

// Impairments are those that hold now; they are not to be changed.
func (p *Impairer) Impairments() []Impairment { return *p.impairments.Load() }

// Seed is what the choices rest on.
func (p *Impairer) Seed() uint64 { return p.seed }

// MayBefall says whether any impairment speaks of a call of which the model and
// the session are not known yet, nor, when it is empty, the scenario.
func (p *Impairer) MayBefall(a Ask) bool {
	return slices.ContainsFunc(p.Impairments(), func(m Impairment) bool {
		s := m.Select
		s.Model, s.Session = "", ""
		if a.Scenario == "" {
			s.Scenario = ""
		}
		return s.speaksOf(&a)
	})
}

// Pick draws what befalls the next call: at most one harm of each kind, in the
// order of the impairments. The draw rests on the seed, the call's ordinal
// among those of its scenario, and the impairment's own words: neither other
// scenarios nor other impairments change it.
func (p *Impairer) Pick(a Ask) []Harm {
	impairments := p.Impairments()
	if len(impairments) == 0 {
		return nil
	}
	n := p.ordinal(a.Scenario)
	var harms []Harm
	for i := range impairments {
		m := &impairments[i]
		if m.Select.speaksOf(&a) && !hasKind(harms, m.Kind) {
			if h, ok := m.draw(p.chance(a.Scenario, n, m)); ok {
				harms = append(harms, h)
			}
		}
	}
	return harms
}

func hasKind(harms []Harm, kind ImpairmentKind) bool {
	return slices.ContainsFunc(harms, func(h Harm) bool { return h.Kind == kind })
}

func (p *Impairer) ordinal(scenario string) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.calls[scenario]; !known && len(p.calls) >= mostScenarios {
		scenario = ""
	}
	p.calls[scenario]++
	return p.calls[scenario]
}

// chance is the source of one impairment's choices about one call.
func (p *Impairer) chance(scenario string, ordinal uint64, m *Impairment) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, scenario+"\x00"+m.String())    // a hash takes everything
	return rand.New(rand.NewPCG(p.seed^h.Sum64(), ordinal)) //nolint:gosec // a choice to be made again, not a secret
}

func (m *Impairment) draw(rng *rand.Rand) (h Harm, ok bool) {
	if rng.Float64() >= m.Share {
		return Harm{}, false
	}
	h = Harm{Kind: m.Kind, Number: m.Number, Time: m.Time.draw(rng.Float64())}
	if m.Event.Last > 0 {
		h.Event = m.Event.First + rng.IntN(m.Event.Last-m.Event.First+1)
	}
	return h, true
}
