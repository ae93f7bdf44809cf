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

// series are the attributes of one series, and of those that have some more.
type series struct {
	all    []attribute.KeyValue
	plain  metric.MeasurementOption
	record []metric.RecordOption // plain
	// events are for what is recorded with each event of a stream, which is often:
	// without the address and the API it costs less.
	events   []metric.RecordOption
	eventSet attribute.Set                      // the same
	more     map[extra]metric.MeasurementOption // what with made; the recorder's own
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
		found = &series{all: s.Attributes(), more: map[extra]metric.MeasurementOption{}}
		found.plain = metric.WithAttributeSet(attribute.NewSet(found.all...))
		found.record = []metric.RecordOption{found.plain}
		less := s
		less.Host, less.Port, less.API = "", 0, ""
		found.eventSet = attribute.NewSet(less.Attributes()...)
		found.events = []metric.RecordOption{metric.WithAttributeSet(found.eventSet)}
		l.known[s] = found
	}
	return found
}

// each is 0 for all series that there are.
func (l *seriesLabels) each() map[*series]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[*series]int64, len(l.known))
	for _, s := range l.known {
		all[s] = 0
	}
	return all
}

// with are the series' attributes and at most three more, of which there are few
// kinds: they are made once.
func (s *series) with(more ...attribute.KeyValue) metric.MeasurementOption {
	if len(more) == 0 {
		return s.plain
	}
	var key extra
	copy(key[:], more)
	made := s.more[key]
	if made == nil || len(more) > len(key) {
		made = metric.WithAttributeSet(attribute.NewSet(append(s.all[:len(s.all):len(s.all)], more...)...))
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
