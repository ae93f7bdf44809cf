package store

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"weir/store/call"
)

// Anybody who may call may name models, scenarios and sessions, and must not
// make metrics grow without end by it. So each kind of name has some places, and
// so have the series that they make together; what finds no place is other.
const (
	mostPlaces  = 50 // of models, of scenarios, of upstreams, of classes of failure
	mostSeries  = 400
	other       = "other"
	otherErrors = "_OTHER" // by the conventions
)

// bounded are names that have places. Half of the places are kept for names that
// an endpoint has answered to: others may be anybody's invention.
type bounded map[string]bool

func (b bounded) of(name string, answered bool) string {
	switch {
	case name == "" || b[name]:
		return name
	case len(b) >= mostPlaces, !answered && len(b) >= mostPlaces/2:
		return other
	}
	b[name] = true
	return name
}

// seriesLabels give each call the series in which it is counted.
type seriesLabels struct {
	mu                                     sync.Mutex
	models, scenarios, upstreams, failures bounded
	known                                  map[call.Series]*series
}

func newSeriesLabels() *seriesLabels {
	return &seriesLabels{models: bounded{}, scenarios: bounded{}, upstreams: bounded{}, failures: bounded{}, known: map[call.Series]*series{}}
}

// labelled are attributes, put together for those who record by them.
type labelled struct {
	set    attribute.Set
	option metric.MeasurementOption
	record []metric.RecordOption // option
}

func newLabelled(list ...attribute.KeyValue) *labelled {
	set := attribute.NewSet(list...)
	option := metric.WithAttributeSet(set)
	return &labelled{set, option, []metric.RecordOption{option}}
}

// series are the attributes of one series, and of those that have some more.
type series struct {
	all   []attribute.KeyValue
	plain *labelled
	// events are for what comes with each event of a stream, whose endpoint and API
	// nobody asks for.
	events *labelled
	more   map[extra]*labelled // what with made; the recorder's own
	totals totals
}

// extra are attributes beside a series' own.
type extra [3]attribute.KeyValue

// of is the series in which the calls of s are counted. answered says that an
// endpoint took one.
func (l *seriesLabels) of(s call.Series, answered bool) *series {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Model = l.models.of(s.Model, answered)
	s.Scenario = l.scenarios.of(s.Scenario, answered)
	at := s.Upstream
	if at == "" { // the generator knows the endpoint alone
		at = s.Host
	}
	if l.upstreams.of(at, answered) == other {
		s.Host, s.Port = "", 0
		if s.Upstream != "" {
			s.Upstream = other
		}
	}
	if l.known[s] == nil && len(l.known) >= mostSeries {
		s.Model, s.Scenario, s.Upstream, s.Host, s.Port = other, other, other, "", 0
	}
	found := l.known[s]
	if found == nil {
		less := s
		less.Host, less.Port, less.API = "", 0, ""
		all := s.Attributes()
		found = &series{all: all, plain: newLabelled(all...), events: newLabelled(less.Attributes()...), more: map[extra]*labelled{}}
		l.known[s] = found
	}
	return found
}

// each is 0 for all series that there are. It tells their totals.
func (l *seriesLabels) each(tell func(*series)) map[*series]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[*series]int64, len(l.known))
	for _, s := range l.known {
		tell(s)
		all[s] = 0
	}
	return all
}

// add adds to a series' totals.
func (l *seriesLabels) add(s *series, to func(*totals)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to(&s.totals)
}

// with are the series' attributes and at most three more, of which there are few
// kinds: they are made once.
func (s *series) with(more ...attribute.KeyValue) *labelled {
	if len(more) == 0 {
		return s.plain
	}
	var key extra
	copy(key[:], more)
	made := s.more[key]
	if made == nil || len(more) > len(key) {
		made = newLabelled(append(s.all[:len(s.all):len(s.all)], more...)...)
		s.more[key] = made
	}
	return made
}

// failure is the attribute of what went wrong; none where nothing did.
func (l *seriesLabels) failure(c *call.Call) []attribute.KeyValue {
	if c.Outcome == call.OK || c.Outcome == "" {
		return nil
	}
	class := c.ErrorType
	if class == "" {
		class = string(c.Outcome)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if class = l.failures.of(class, true); class == other {
		class = otherErrors
	}
	return []attribute.KeyValue{call.ErrorAttribute(class)}
}
