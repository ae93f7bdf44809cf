package generator

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/generator/loadmodel"
	"weir/proxy/wire"
)

// Dataset is a file of requests with their prompts in full. Like a trace it is
// read as it is used, in memory that does not grow with its length: a session's
// requests stand together in it, and sessions in the order of their starts.
type Dataset struct {
	Path   string
	Format string // "weir", "openai-batch" or "sharegpt"

	Requests  int
	Sessions  int           // as they are sent: turns at times of their own are one each
	Begun     int           // of Sessions: those that do not go on with one before
	AtMost    bool          // Begun is at most so many: there are more than are remembered
	Timed     bool          // its lines say when they are due
	Last      time.Duration // the start of the last session, in the file's own time; 0 unless Timed
	Scenarios []string      // in the order in which they come
	Notes     []string      // what is odd, to be told before anything is sent

	options  DatasetOptions
	dialects []dialect
	weights  map[string]float64 // of scenarios, where lines give them
}

// DatasetOptions say how a dataset is read. The zero value reads all of it, in
// its own time.
type DatasetOptions struct {
	Limit int     // requests; 0: all
	Speed float64 // 2 plays it in half the time, think times too; 0 is 1

	// QPS and For put new times in the place of the file's: by Poisson's process,
	// QPS requests start a second, or all of them within For. Both together send
	// at QPS, and nothing after For.
	QPS float64
	For time.Duration

	Model string   // to ask for, whatever the lines say; empty: as they say
	API   wire.API // to speak, whatever the lines say; empty: as they say, else chat

	// OnSurvey, when set, is told about once a second how many requests OpenDataset
	// has read, which ends with loadmodel.ErrStopped where it says not to go on.
	OnSurvey func(requests int) (goOn bool)
}

// Said is what one turn of a dataset says.
type Said struct {
	// Body is the request as the file has it: an object with messages in the form
	// of chat completions and what steers weir beside them; with Raw, a body of the
	// session's own API and nothing else.
	Body []byte
	Raw  bool

	// Live says that a session's later turn holds only what is new in it: the
	// history with the model's real answers comes before. Cut says that its text
	// is cut to fill the turn's Input, as of a turn that the corpus writes.
	Live, Cut bool
}

// talk is a session as a dataset has it.
type talk struct {
	session  string // its id; empty for a single request
	scenario string
	api      wire.API
	model    string
	stream   bool
	warmUp   bool
	weight   float64 // the scenario's share in its model; 0 when not said
	at       time.Duration
	timed    bool
	before   int // turns of the session that went before at times of their own
	turns    []Turn
	said     []Said
	place    string // in the file, for errors
}

// LooksLikeDataset says whether a file begins as a dataset does, and neither as
// a trace nor as a load model.
func LooksLikeDataset(path string) bool { return sniffDataset(path) != "" }

// OpenDataset reads a dataset through, so that an error in it is told before
// anything is sent.
func OpenDataset(path string, o DatasetOptions) (*Dataset, error) {
	d := &Dataset{Path: path, Format: sniffDataset(path), options: o}
	if o.Speed != 0 && !(o.Speed >= 1e-6 && o.Speed <= 1e6) {
		return nil, d.problem("speed %g: want 0.000001 to 1000000; 2 plays it in half the time", o.Speed)
	}
	if d.Format == "" {
		return nil, d.problem(`is no dataset; want lines of JSON with "messages", an OpenAI batch file, or ShareGPT's "conversations"`)
	}
	if d.Format == formatBatch && o.API != "" {
		return nil, d.problem("--api %s: the requests of a batch file are written for the API of their url; leave --api out", o.API)
	}
	return d, d.survey()
}

// mostScenarios is how many scenarios a dataset may name: each takes memory in
// a run and a row in every table.
const mostScenarios = 1000

// survey reads the file through and counts.
func (d *Dataset) survey() error {
	untimed, back := 0, 0
	d.weights = map[string]float64{}
	var begun beginnings
	told := time.Now()
	for t, err := range d.talks() {
		if err != nil {
			return err
		}
		d.Sessions++
		if _, goesOn := begun.goesOn(t.session, t.before, len(t.turns)); !goesOn || t.session == "" {
			d.Begun++
		}
		d.Requests += len(t.turns)
		if d.options.OnSurvey != nil && time.Since(told) >= time.Second {
			told = time.Now()
			if !d.options.OnSurvey(d.Requests) {
				return loadmodel.ErrStopped
			}
		}
		if !slices.Contains(d.Scenarios, t.scenario) {
			d.Scenarios = append(d.Scenarios, t.scenario)
			if len(d.Scenarios) > mostScenarios {
				return d.problem("names over %d scenarios; scenario_id is a kind of traffic, not of one request", mostScenarios)
			}
		}
		if k := (dialect{t.api, t.model, t.stream}); len(d.dialects) < mostScenarios && !slices.Contains(d.dialects, k) {
			d.dialects = append(d.dialects, k)
		}
		if t.weight > 0 {
			d.weights[t.scenario] = t.weight
		}
		switch {
		case !t.timed:
			untimed++
		case t.at < d.Last:
			back++
		}
		d.Last = max(d.Last, t.at)
		if d.Timed = untimed == 0; !d.Timed && d.Sessions > untimed && !d.retimed() {
			return fmt.Errorf("%s: some lines have at_ms and some have not; give it to all, or say --qps or --for", t.place)
		}
	}
	d.AtMost = begun.forgot
	switch {
	case d.Requests == 0:
		return d.problem("holds no request that can be sent")
	case !d.Timed && !d.retimed():
		return d.problem("its lines say no times (at_ms); say how fast to send them: --qps 5, or --for 10m")
	}
	if back > 0 && !d.retimed() {
		d.Notes = append(d.Notes, fmt.Sprintf("of %s, %s back in time: each starts with the one before it; sort the lines by at_ms", count(d.Sessions, "session", "sessions"), count(back, "goes", "go")))
	}
	return nil
}

// retimed says whether new times take the place of the file's.
func (d *Dataset) retimed() bool { return d.options.QPS > 0 || d.options.For > 0 }

// Length is the time over which its sessions start.
func (d *Dataset) Length() time.Duration {
	switch o := d.options; {
	case o.For > 0:
		return o.For
	case o.QPS > 0:
		return time.Duration(float64(d.Requests) / o.QPS * float64(time.Second))
	}
	return d.played(d.Last)
}

// peakQPS is the rate of request starts where the options give it, else 0.
func (d *Dataset) peakQPS() float64 {
	switch o := d.options; {
	case o.QPS > 0:
		return o.QPS
	case o.For > 0:
		return float64(d.Requests) / o.For.Seconds()
	}
	return 0
}

func (d *Dataset) played(t time.Duration) time.Duration {
	if d.options.Speed == 0 {
		return t
	}
	return time.Duration(float64(t) / d.options.Speed)
}

func (d *Dataset) problem(format string, a ...any) error {
	return fmt.Errorf("dataset %s: %s", d.Path, fmt.Sprintf(format, a...))
}

// talks are the file's sessions, up to the limit of requests. After an error
// there are no more.
func (d *Dataset) talks() iter.Seq2[talk, error] {
	read := d.lines
	if d.Format == formatShareGPT {
		read = d.conversations
	}
	if d.options.Limit <= 0 {
		return read()
	}
	return func(yield func(talk, error) bool) {
		left := d.options.Limit
		for t, err := range read() {
			if err == nil && len(t.turns) > left {
				t.turns, t.said = t.turns[:left], t.said[:left]
			}
			left -= len(t.turns)
			if !yield(t, err) || left == 0 {
				return
			}
		}
	}
}

// sessions are those of the plan.
func (d *Dataset) sessions(p *Plan) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		next, stop := iter.Pull(d.starts(p))
		defer stop()
		n, warm := 0, 0
		var now time.Duration
		for t, err := range d.talks() {
			if err != nil {
				yield(Session{}, err)
				return
			}
			s := Session{Index: n, ID: t.session, Scenario: t.scenario, WarmUp: t.warmUp, API: t.api, Model: t.model, Stream: t.stream,
				Before: t.before, Turns: t.turns, Messages: t.said}
			if t.warmUp {
				warm++
				s.Index = -warm
			} else {
				n++
			}
			if d.retimed() {
				var more bool
				if now, more = next(); !more {
					return
				}
			} else {
				now = max(now, d.played(t.at))
			}
			s.Due = now
			for i := range s.Turns {
				if i > 0 {
					s.Turns[i].Think = max(d.played(s.Turns[i].Think), leastThink)
				}
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}

// starts are the new times of its sessions: Poisson's process, or, where For
// alone is given, as many of its points as there are sessions, spread over that
// time.
func (d *Dataset) starts(p *Plan) iter.Seq[time.Duration] {
	rng := p.rng(streamStarts, 1)
	return func(yield func(time.Duration) bool) {
		at, o := 0.0, d.options
		rate := o.QPS * float64(d.Sessions) / float64(d.Requests)
		for left := d.Sessions; left > 0; left-- {
			if o.QPS > 0 {
				at += rng.ExpFloat64() / rate
			} else { // the first of as many points as are left, thrown on the rest of the time
				rest := o.For.Seconds() - at
				at -= rest * math.Expm1(-rng.ExpFloat64()/float64(left))
			}
			due := time.Duration(at * float64(time.Second))
			if o.For > 0 && due > o.For || !yield(due) {
				return
			}
		}
	}
}

const (
	formatLines    = "weir"
	formatBatch    = "openai-batch"
	formatShareGPT = "sharegpt"
)

// sniffDataset names the format by a file's beginning; empty when it is none.
func sniffDataset(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := newLineReader(f)
	line, err := lines.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	if bytes.HasPrefix(line, []byte("[")) {
		return formatShareGPT
	}
	fields := rawFields(line)
	switch {
	case fields["messages"] != nil:
		return formatLines
	case fields["custom_id"] != nil && fields["body"] != nil:
		return formatBatch
	case fields["conversations"] != nil:
		return formatShareGPT
	}
	return ""
}

// ownScenario is the scenario of lines that name none: the file's name.
func (d *Dataset) ownScenario() string {
	return scenarioName(strings.TrimSuffix(filepath.Base(d.Path), filepath.Ext(d.Path)))
}

// open opens the file, with an error that says what to do.
func (d *Dataset) open() (*os.File, error) {
	f, err := os.Open(d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, d.problem("no such file; check the path")
	case err != nil:
		return nil, d.problem("%s", err)
	}
	return f, nil
}
