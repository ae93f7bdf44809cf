package generator

import (
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/generator/loadmodel"
)

// traceScenario is what a trace's rows are sent as, where they do not say it.
func (p *Plan) traceScenario() (*loadmodel.Model, *loadmodel.Scenario) {
	m := p.Model
	if m == nil {
		m = &loadmodel.Model{}
	}
	if len(m.Scenarios) > 0 {
		return m, &m.Scenarios[0]
	}
	name := p.Trace.Name
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(p.Trace.Path), filepath.Ext(p.Trace.Path))
	}
	return m, &loadmodel.Scenario{ID: scenarioName(name), Weight: 1, Corpus: "prose", Language: "en", Stream: true}
}

// scenarioName makes a scenario's name of a file's.
func scenarioName(of string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(of))
}

// tracedScenarios are the names that a trace's sessions go under. Of a trace that
// cannot be read to its end they are all that can be told; the plan's sessions
// end with that error too.
func (p *Plan) tracedScenarios() []string {
	m, sc := p.traceScenario()
	survey, err := p.Trace.Survey()
	names := survey.Scenarios
	if len(m.Scenarios) > 0 || survey.Unnamed > 0 || err != nil {
		names = append([]string{sc.ID}, names...)
	}
	if len(m.Scenarios) > 0 {
		names = names[:1]
	}
	return names
}

// traced gives the rows of the trace as sessions: of one request each or, where
// the trace says what follows, of all its turns.
func (p *Plan) traced() iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		m, sc := p.traceScenario()
		index := 0
		for row, err := range p.Trace.Rows() {
			if err != nil {
				yield(Session{}, err)
				return
			}
			if !yield(p.tracedSession(m, sc, index, &row), nil) {
				return
			}
			index++
		}
	}
}

// tracedSession makes a session of a row. The plan's model says what is sent;
// the row's own word counts where it says nothing.
func (p *Plan) tracedSession(m *loadmodel.Model, sc *loadmodel.Scenario, index int, row *loadmodel.Row) Session {
	s := p.describe(m, sc, index, p.rng(streamSession, index))
	s.Due, s.ID, s.Before = row.At, row.Session, max(row.Turn-1, 0)
	if row.Scenario != "" && len(m.Scenarios) == 0 {
		s.Scenario = row.Scenario
	}
	asAsked(&s, m, sc, loadmodel.Asked{API: row.API, Model: row.Model, Whole: row.Whole})
	if len(row.HashIDs) > 0 {
		s.Blocks, s.BlockTokens = row.HashIDs, p.Trace.BlockTokens
	}
	s.Turns = append(make([]Turn, 0, 1+len(row.Then)), Turn{Input: max(row.Input, 1), Output: max(row.Output, 1)})
	for _, f := range row.Then {
		s.Turns = append(s.Turns, Turn{Input: max(f.Input, 1), Output: max(f.Output, 1), Think: max(f.Think, leastThink)})
	}
	if len(s.Turns) > 1 && s.ID == "" {
		s.ID = sessionID(index)
	}
	return s
}

// asAsked puts the trace's word where the plan's model says nothing.
func asAsked(s *Session, m *loadmodel.Model, sc *loadmodel.Scenario, asked loadmodel.Asked) {
	if s.Model == "" {
		s.Model = asked.Model
	}
	if asked.API != "" && m.API == "" && sc.API == "" && len(m.Models) == 0 {
		s.API = asked.API
	}
	if asked.Whole && len(m.Scenarios) == 0 {
		s.Stream = false
	}
}

// tracedDialects are those of a trace's rows, each once.
func (p *Plan) tracedDialects() []dialect {
	m, sc := p.traceScenario()
	survey, _ := p.Trace.Survey() // an error is told by Sessions
	var list []dialect
	for _, asked := range survey.Asked {
		s := p.describe(m, sc, 0, p.rng(streamSession, 0))
		asAsked(&s, m, sc, asked)
		if d := (dialect{s.API, s.Model, s.Stream}); !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	return list
}

// tracedLength is the time over which a trace's sessions start; 0 when it
// cannot be read.
func (p *Plan) tracedLength() time.Duration {
	length, err := p.Trace.Length()
	if err != nil {
		return 0
	}
	return length
}
