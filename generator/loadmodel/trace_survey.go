package loadmodel

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"weir/proxy/wire"
)

// Survey is what reading a trace through tells of it.
type Survey struct {
	Rows     int           // the follow-up turns of weir's own rows included
	Sessions int           // rows: what starts of itself
	Span     time.Duration // from the beginning to the last row, in the trace's own time
	Notes    []string      // what is odd, to be told before anything is sent
	// Scenarios are those that weir's own rows name, in order of their names.
	Scenarios []string
	Unnamed   int     // rows that name none
	Silent    int     // rows that do not say whether their answers were streamed
	Alone     int     // rows that do not say what their prompts share with others
	Asked     []Asked // what the rows ask for, each once, at most 20
	// Forgot says that there are more sessions than are remembered: one that went
	// on after many others counts as a new one.
	Forgot bool
}

// Asked is of whom a row asks, and how.
type Asked struct {
	API   wire.API
	Model string
	Whole bool // in one piece, not as a stream
}

// surveying is what is counted in a survey.
type surveying struct {
	Survey
	zero, failed, back, ticks int
	images                    int
	later, shrunk             int
	last                      time.Duration
	held                      recent[string, int] // tokens after the last turn of each session
	profile                   profile
	scenarios                 map[string]bool
}

// Survey reads what is chosen of a trace to its end, once, and keeps nothing of
// it but its figures; with an error, those up to the row that cannot be read. It notes a clock too coarse for its rate, rows that go
// back in time or have no tokens, failures, turns that count their history or
// do not, against what their format says, hash ids that do not fill their
// prompts, and load that drifts between the halves of the time.
func (t *Trace) Survey() (Survey, error) {
	if t.surveyed {
		return t.survey, nil
	}
	s := surveying{scenarios: map[string]bool{}}
	var fault error
	told := time.Now()
	for r, err := range t.chosen() {
		if err != nil {
			fault = err
			break
		}
		s.add(&r)
		if s.Sessions%1024 == 0 && t.options.OnSurvey != nil && time.Since(told) >= time.Second {
			told = time.Now()
			if !t.options.OnSurvey(s.Rows) {
				fault = ErrStopped
				break
			}
		}
	}
	s.Scenarios = slices.Sorted(maps.Keys(s.scenarios))
	if fault != nil {
		return s.Survey, fault
	}
	t.note(&s)
	t.survey, t.surveyed = s.Survey, true
	return t.survey, nil
}

// mostAsked is how many models and APIs a survey tells of.
const mostAsked = 20

func (s *surveying) add(r *record) {
	if r.Failed {
		s.failed++
	} else if r.Input == 0 || r.Output == 0 {
		s.zero++
	}
	if r.back {
		s.back++
	} else if s.Sessions == 0 || r.at > s.last {
		s.ticks++
		s.last = r.at
	}
	if r.Session != "" {
		if before, ok := s.held.get(r.Session); ok {
			s.later++
			if r.Input < before {
				s.shrunk++
			}
		}
		s.held.put(r.Session, r.Input+r.Output, 0)
	}
	if r.Scenario != "" {
		s.scenarios[r.Scenario] = true
	} else {
		s.Unnamed++
	}
	if r.images {
		s.images++
	}
	if r.silent {
		s.Silent++
	}
	if len(r.HashIDs) == 0 {
		s.Alone++
	}
	if asked := (Asked{r.API, r.Model, r.Whole}); len(s.Asked) < mostAsked && !slices.Contains(s.Asked, asked) {
		s.Asked = append(s.Asked, asked)
	}
	s.Forgot = s.Forgot || r.forgot
	s.profile.add(r)
	s.Span = r.at
	s.Sessions++
	s.Rows += 1 + len(r.Then)
}

// note says what is odd.
func (t *Trace) note(s *surveying) {
	note := func(odd bool, format string, a ...any) {
		if odd {
			s.Notes = append(s.Notes, fmt.Sprintf(format, a...))
		}
	}
	if t.Tick > 0 {
		how := "rows of one tick are spread over it by chance"
		switch t.options.Times {
		case Verbatim:
			how = "played as it is, each tick is a burst that no user made"
		case Resampled:
			how = "new instants are drawn within each minute"
		}
		note(true, "its clock is coarse: %d rows stand on %d ticks, some %s apart; %s", s.Sessions, s.ticks, t.Tick.Round(time.Millisecond), how)
	}
	note(t.Format == "servegen", "its requests are drawn by chance from its clients' rates and lengths: another seed gives others")
	note(s.failed > 0, "rows of requests that failed: %d of %d, sent with at least 1 token to be answered", s.failed, s.Sessions)
	note(s.zero > 0, "rows without tokens of a prompt or of an answer: %d of %d, sent with at least 1", s.zero, s.Sessions)
	note(s.back > 0, "rows that go back in time: %d of %d, each sent with the row before it", s.back, s.Sessions)
	note(s.Forgot, "it has more sessions than are remembered: one that goes on after %d others, or fewer where prompts are long, may count as a new one", recentKeys)
	t.noteTurns(s, note)
	note(s.images > 0, "rows with images: %d of %d; no images are sent, and text stands for the tokens of all", s.images, s.Sessions)
	note(t.blank > 0, "calls without a word of their tokens: %d; they are left out", t.blank)
	t.noteBlocks(note)
	a, b := s.profile.halves(s.Span)
	if a.rows >= 50 && b.rows >= 50 {
		note(apart(a.rows, b.rows) > 0.2, "its rate drifts: %.0f rows in its first half, %.0f in its second", a.rows, b.rows)
		note(apart(a.inputs/a.rows, b.inputs/b.rows) > 0.2, "its prompts drift: %.0f tokens on average in its first half, %.0f in its second", a.inputs/a.rows, b.inputs/b.rows)
		note(apart(a.outputs/a.rows, b.outputs/b.rows) > 0.2, "its answers drift: %.0f tokens on average in its first half, %.0f in its second", a.outputs/a.rows, b.outputs/b.rows)
	}
}

func (t *Trace) noteTurns(s *surveying, note func(bool, string, ...any)) {
	p := &t.probed
	switch {
	case p.later > 0 && p.countsHistory():
		note(true, "the turns of its sessions count their history (%d of %d), where by its format they would count only what is new: they are sent as they stand", p.grown, p.later)
	case p.later > 0:
		note(true, "the turns of its sessions count only what is new: the history is added to each, so that prompts are as long as what the model read")
	default:
		note(s.later >= 20 && 2*s.shrunk > s.later, "most later turns of its sessions (%d of %d) have shorter prompts than the turn before left behind: they seem to count only what is new, and are sent as they stand", s.shrunk, s.later)
	}
}

func (t *Trace) noteBlocks(note func(bool, string, ...any)) {
	p := &t.probed
	switch {
	case p.blocks > 0 && t.BlockTokens != p.blocks:
		note(true, "its hash ids stand for blocks of %d tokens, not of the %d asked for: prompts keep their length, and share %.4g times what they shared", p.blocks, t.BlockTokens, float64(t.BlockTokens)/float64(p.blocks))
	case p.blocks > 0:
		note(true, "its hash ids stand for blocks of %d tokens, not of the %d that its format says: read by the format, its prompts would share %.4g times what they shared", p.blocks, formats[t.Format].blockTokens, float64(formats[t.Format].blockTokens)/float64(p.blocks))
	default:
		note(p.filled*20 < p.blocked*19, "the hash ids of %d of the first %d rows do not fill their prompts with blocks of %d tokens: what is beyond them is shared with no other", p.blocked-p.filled, p.blocked, t.BlockTokens)
	}
}

// apart is how far two values lie apart, as a share of the larger.
func apart(a, b float64) float64 {
	if largest := max(a, b); largest > 0 {
		return 1 - min(a, b)/largest
	}
	return 0
}

// load is what is counted of a stretch of time.
type load struct{ rows, inputs, outputs float64 }

func (l *load) add(o load) {
	l.rows += o.rows
	l.inputs += o.inputs
	l.outputs += o.outputs
}

// profile is the load over a time whose length is not known before: so many
// stretches of equal length, which doubles whenever the time outgrows them.
type profile struct {
	width     time.Duration
	stretches [4096]load
}

func (p *profile) add(r *record) {
	if p.width == 0 {
		p.width = time.Millisecond
	}
	for r.at/p.width >= time.Duration(len(p.stretches)) {
		for i := range p.stretches {
			var both load
			if 2*i+1 < len(p.stretches) {
				both = p.stretches[2*i]
				both.add(p.stretches[2*i+1])
			}
			p.stretches[i] = both
		}
		p.width *= 2
	}
	p.stretches[r.at/p.width].add(load{1, float64(r.Input), float64(r.Output)})
}

// halves are the loads of the two halves of a time, as near as the stretches
// part them.
func (p *profile) halves(span time.Duration) (a, b load) {
	for i, l := range p.stretches {
		if time.Duration(i+1)*p.width <= span/2 {
			a.add(l)
		} else {
			b.add(l)
		}
	}
	return a, b
}

// Length is the time from the first request's instant to the last one's, as
// played; the turns that follow a request run on after it. The trace is read
// for it, unless it was surveyed, and the error is of a row that cannot be.
func (t *Trace) Length() (time.Duration, error) {
	s, err := t.Survey()
	if t.options.Times != Verbatim && t.options.Times != Resampled {
		s.Span += t.Tick
	}
	return t.played(s.Span), err
}
