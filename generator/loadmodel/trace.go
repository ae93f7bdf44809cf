package loadmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"weir/proxy/wire"
)

// Row is one request of a recorded trace.
type Row struct {
	At      time.Duration // since the beginning of the trace, or of the window that is played
	Input   int           // tokens of the whole prompt, history included
	Output  int           // generated tokens
	Model   string        // empty when the trace does not say
	Session string        // empty when the trace does not say
	Turn    int           // in its session, from 1; 0 without one
	// HashIDs stand for the blocks of the prompt, Trace.BlockTokens each and
	// the last one cut to what is left: equal ids are equal text. Empty when
	// nothing is known of what the prompt shares.
	HashIDs []int64
	Failed  bool // the recorded request failed

	// What only weir's own recordings know.
	Scenario string
	API      wire.API
	Whole    bool       // the answer was asked for in one piece, not as a stream
	Then     []FollowUp // turns that follow this one, each after the answer to the one before
}

// FollowUp is a later turn of a session.
type FollowUp struct {
	Input  int           `json:"input_tokens"` // of the whole prompt, history included
	Output int           `json:"output_tokens"`
	Think  time.Duration `json:"think_ns"` // between the end of the turn before and this one
}

// The ways in which a trace's rows get their instants.
const (
	// Spread takes the trace's own times. Rows that a coarse clock has put on
	// one tick, all at once, are spread over it by chance: the burst is one
	// that no user made. It is the default.
	Spread = "spread"
	// Verbatim takes the trace's own times as they stand, bursts of a coarse
	// clock included.
	Verbatim = "verbatim"
	// Resampled keeps the trace's rate, minute by minute, and draws new
	// instants within each minute by chance.
	Resampled = "resampled"
)

// TraceOptions say how a trace is read. The zero value reads all of it, in its
// own time, and finds its format out.
type TraceOptions struct {
	Format string  // a name of TraceFormats; empty: by how it begins
	Speed  float64 // 2 plays it in half the time; 0 is 1
	Limit  int     // rows; 0: all

	// From and To are a window of the trace's own time, counted from its first
	// row: rows from From on and before To are played, the window's beginning
	// at 0. A To of 0 is the trace's end.
	From, To time.Duration

	Times string // Spread, Verbatim or Resampled; empty: Spread
	// BlockTokens is how many tokens each hash id stands for; 0: as many as
	// the format says or, where its rows contradict that, as its rows say.
	BlockTokens int
	Seed        uint64 // of the chance in Times, and of what a ServeGen client draws

	// OnSurvey, when set, is told about once a second how many rows a survey has
	// read, which ends with ErrStopped where it says not to go on.
	OnSurvey func(rows int) (goOn bool)
}

// ErrStopped is the error of a survey that was told not to go on.
var ErrStopped = errors.New("the reading was stopped")

// Trace is a file, or a folder of ServeGen's clients, of recorded requests. It
// is read as it is used, in memory that does not grow with its length.
type Trace struct {
	Path        string
	Name        string // for people, and to name the scenario after; empty: Path
	Format      string
	Tick        time.Duration // of a clock too coarse for its rate; 0: it is fine enough
	BlockTokens int           // of the blocks that Row.HashIDs stand for; 0 when there are none

	options TraceOptions
	keys    int // sessions that are remembered; 0: recentKeys
	spans   int // that may be out of order; 0: spansHeld
	probed  probed
	blank   int              // calls of the file, as far as it was read, of which it tells no tokens
	source  func() io.Reader // where the rows stand, if that is no file of that path
	// survey is what Survey found, so that it reads only once.
	survey   Survey
	surveyed bool
}

// format is a kind of trace.
type format struct {
	records     func(*Trace) iter.Seq2[record, error]
	blockTokens int  // of each hash id; 0: it has none of its own
	fromZero    bool // its time begins at 0, not with its first row
	streams     bool // its rows can say whether answers were streamed
}

// formats are the kinds of traces by name.
var formats = map[string]format{
	"azure":    {records: azure.records},
	"burstgpt": {records: burst.records, blockTokens: sessionBlock},
	"mooncake": {records: (*Trace).jsonRecords, blockTokens: 512},
	"bailian":  {records: (*Trace).jsonRecords, blockTokens: 16},
	"servegen": {records: (*Trace).clientRecords, fromZero: true},
	"otel":     {records: (*Trace).spanRecords, blockTokens: sessionBlock, streams: true},
	"weir":     {records: (*Trace).ownRecords, blockTokens: OwnBlockTokens, fromZero: true, streams: true},
}

// TraceFormats are the names of the formats that are read.
func TraceFormats() []string { return slices.Sorted(maps.Keys(formats)) }

// OpenTrace finds out what a trace is. It reads the beginning, and fails if
// that cannot be read as the format asks.
func OpenTrace(path string, o TraceOptions) (*Trace, error) {
	t := &Trace{Path: path, Format: o.Format, options: o}
	if err := t.checkOptions(); err != nil {
		return nil, err
	}
	if t.Format == "" {
		var err error
		if t.Format, err = t.sniff(); err != nil {
			return nil, err
		}
	}
	f, known := formats[t.Format]
	if !known {
		return nil, t.problem("format %q is not known; want %s", t.Format, oneOf(TraceFormats()))
	}
	t.BlockTokens = f.blockTokens
	return t, t.probe()
}

// RowsIn makes a trace of rows in weir's own form (see AppendRow) that stand in
// the first size bytes of r, under a name for people. It has no Path.
func RowsIn(name string, r io.ReaderAt, size int64, o TraceOptions) (*Trace, error) {
	t := &Trace{Name: name, Format: "weir", BlockTokens: OwnBlockTokens, options: o}
	t.source = func() io.Reader { return io.NewSectionReader(r, 0, size) }
	if err := t.checkOptions(); err != nil {
		return nil, err
	}
	return t, t.probe()
}

func (t *Trace) checkOptions() error {
	o := &t.options
	switch {
	case o.Speed != 0 && !(o.Speed >= 1e-6 && o.Speed <= 1e6):
		return t.problem("speed %g: want 0.000001 to 1000000; 2 plays it in half the time", o.Speed)
	case o.From < 0 || o.To < 0 || o.To > 0 && o.To <= o.From:
		return t.problem("the window from %s to %s holds no time; want times since the trace's beginning, the first before the second", o.From, o.To)
	case o.Times != "" && o.Times != Spread && o.Times != Verbatim && o.Times != Resampled:
		return t.problem("times %q: want %s, %s or %s", o.Times, Spread, Verbatim, Resampled)
	case o.BlockTokens < 0:
		return t.problem("blocks of %d tokens: want 1 or more, or 0 for what the trace says", o.BlockTokens)
	}
	return nil
}

// LooksLikeTrace says whether a file begins as a trace does, and not as a load
// model, or whether a folder holds ServeGen's clients.
func LooksLikeTrace(path string) bool {
	name, err := (&Trace{Path: path}).sniff()
	return err == nil && name != ""
}

func (t *Trace) problem(format string, a ...any) error {
	return fmt.Errorf("trace %s: %s", t.shown(), fmt.Sprintf(format, a...))
}

// fault is the error of one line.
func (t *Trace) fault(number int, problem string) error {
	return fmt.Errorf("trace %s:%d: %s", t.shown(), number, strings.TrimSpace(problem))
}

func (t *Trace) shown() string {
	if t.Name != "" {
		return t.Name
	}
	return t.Path
}

// oneOf joins names as in "a, b or c".
func oneOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// unknown is the error of a file that begins like none of the formats.
func (t *Trace) unknown(head []byte) error {
	if fields, ok := jsonFields(head); ok && fields["messages"] != nil {
		return t.problem("is a dataset of requests; want a trace of times and lengths")
	}
	return t.problem("its first line is of no format that weir knows; want the columns of Azure (TIMESTAMP,ContextTokens,GeneratedTokens) or BurstGPT (Timestamp,Model,Request tokens,Response tokens), the JSON lines of Mooncake or Bailian, a client of ServeGen (chunk-0-trace.csv) or a folder of them, or OTel spans as JSON")
}

func jsonFields(line []byte) (map[string]json.RawMessage, bool) {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(line, &fields)
	return fields, err == nil
}

// sniff names the format by how the file begins.
func (t *Trace) sniff() (string, error) {
	if info, err := os.Stat(t.Path); err == nil && info.IsDir() {
		if files, err := clientFiles(t.Path); err != nil || len(files) == 0 {
			return "", t.problem("is a directory without clients of ServeGen (chunk-0-trace.csv); name the file in it")
		}
		return "servegen", nil
	}
	if t.beginsWithSpans() {
		return "otel", nil
	}
	for line, err := range t.lines() {
		if err != nil {
			return "", err
		}
		if name := sniffLine(line.text); name != "" {
			return name, nil
		}
		return "", t.unknown(line.text)
	}
	return "", t.problem("is empty; want one request a line")
}

// sniffLine names the format by the first line; empty when it is none.
func sniffLine(line []byte) string {
	if fields, ok := jsonFields(line); ok {
		switch {
		case fields["at_ns"] != nil:
			return "weir"
		case fields["input_length"] == nil:
			return ""
		case fields["chat_id"] != nil:
			return "bailian"
		}
		return "mooncake"
	}
	columns := columnsOf(line)
	switch {
	case azure.fits(columns):
		return "azure"
	case burst.fits(columns):
		return "burstgpt"
	case isWindow(line):
		return "servegen"
	}
	return ""
}

// record is a row with the time of the trace's own clock.
type record struct {
	Row
	at time.Duration

	// What a survey tells of.
	back   bool // the clock went back since the row before
	fresh  int  // of a row in a session: tokens as the file counts them; 0: as Input
	images bool // it had some, of which nothing else is told
	silent bool // it does not say whether the answer was streamed
	forgot bool // of the sessions before it some are forgotten: this may be a later turn of one
}
