package loadmodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

// Row is one request of a recorded trace.
type Row struct {
	At      time.Duration // since the trace's first row
	Input   int           // tokens of the whole prompt, history included
	Output  int           // generated tokens
	Model   string        // empty when the trace does not say
	Session string        // empty when the trace does not say
	Turn    int           // in its session, from 1; 0 without one
	HashIDs []int         // blocks of the prompt; equal ids are equal text
	Failed  bool          // the recorded request failed
}

// TraceOptions say how a trace is read. The zero value reads all of it, in its
// own time, and finds its format out.
type TraceOptions struct {
	Format string  // "azure", "burstgpt", "mooncake" or "bailian"; empty: by its first line
	Speed  float64 // 2 plays it in half the time; 0 is 1
	Limit  int     // rows; 0: all

	// Verbatim leaves the rows of a coarse clock's tick all at once, a burst
	// that no user made. Otherwise they are spread over it by chance from Seed.
	Verbatim bool
	Seed     uint64
}

// Trace is a file of recorded requests. It is read as it is used, in memory
// that does not grow with its length.
type Trace struct {
	Path    string
	Format  string
	Tick    time.Duration // of a clock too coarse for its rate; 0: it is fine enough
	options TraceOptions
}

// traceFormats are the readers of traces by name.
var traceFormats = map[string]func(*Trace) iter.Seq2[record, error]{
	"azure":    azure.records,
	"burstgpt": burst.records,
	"mooncake": (*Trace).jsonRecords,
	"bailian":  (*Trace).jsonRecords,
}

// OpenTrace finds out what a trace is. It reads the beginning, and fails if
// that cannot be read as the format asks.
func OpenTrace(path string, o TraceOptions) (*Trace, error) {
	t := &Trace{Path: path, Format: o.Format, options: o}
	if o.Speed != 0 && !(o.Speed >= 1e-6 && o.Speed <= 1e6) {
		return nil, t.problem("speed %g: want 0.000001 to 1000000; 2 plays it in half the time", o.Speed)
	}
	if t.Format == "" {
		head, err := t.firstLine()
		if err != nil {
			return nil, err
		}
		if t.Format = sniff(head); t.Format == "" {
			return nil, t.unknown(head)
		}
	}
	if traceFormats[t.Format] == nil {
		return nil, t.problem("format %q is not known; want azure, burstgpt, mooncake or bailian", t.Format)
	}
	return t, t.probe()
}

// LooksLikeTrace says whether a file begins as a trace does, and not as a load
// model.
func LooksLikeTrace(path string) bool {
	t := &Trace{Path: path}
	head, err := t.firstLine()
	return err == nil && sniff(head) != ""
}

func (t *Trace) problem(format string, a ...any) error {
	return fmt.Errorf("trace %s: %s", t.Path, fmt.Sprintf(format, a...))
}

// unknown is the error of a file that begins like none of the formats.
func (t *Trace) unknown(head []byte) error {
	if fields, ok := jsonFields(head); ok && fields["messages"] != nil {
		return t.problem("is a dataset of requests, which is not supported yet; want a trace of times and lengths")
	}
	return t.problem("its first line is of no format that weir knows; want the columns of Azure (TIMESTAMP,ContextTokens,GeneratedTokens) or BurstGPT (Timestamp,Model,Request tokens,Response tokens), or the JSON lines of Mooncake or Bailian")
}

func (t *Trace) firstLine() ([]byte, error) {
	for line, err := range t.lines() {
		return line.text, err
	}
	return nil, t.problem("is empty; want one request a line")
}

func jsonFields(line []byte) (map[string]json.RawMessage, bool) {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(line, &fields)
	return fields, err == nil
}

// sniff names the format by the first line; empty when it is none.
func sniff(line []byte) string {
	if fields, ok := jsonFields(line); ok {
		switch {
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
	}
	return ""
}

// probed is how many rows OpenTrace looks at.
const probed = 5000

// probe reads the first rows, and takes the measure of their clock: it is
// coarse when most rows share their instant with another, and its tick is the
// usual distance between instants.
func (t *Trace) probe() error {
	rows, limit := 0, probed
	if t.options.Limit > 0 {
		limit = min(limit, t.options.Limit)
	}
	var last time.Duration
	var gaps []time.Duration
	for r, err := range t.records() {
		if err != nil {
			return err
		}
		if rows > 0 && r.at > last {
			gaps = append(gaps, r.at-last)
		}
		last = max(last, r.at)
		if rows++; rows == limit {
			break
		}
	}
	switch {
	case rows == 0:
		return t.problem("has no rows; want one request a line")
	case rows >= 50 && len(gaps) > 0 && 2*(len(gaps)+1) < rows:
		slices.Sort(gaps)
		t.Tick = gaps[len(gaps)/2]
	}
	return nil
}

// record is a row with the time of the trace's own clock.
type record struct {
	Row
	at time.Duration
}

func (t *Trace) records() iter.Seq2[record, error] { return traceFormats[t.Format](t) }

// fullest is the most rows of one tick that are held to be spread.
const fullest = 1 << 16

// Rows reads the rows in their order, from the first one's time on, at the
// speed asked for. Rows whose time goes back keep the time of the row before.
// After an error, which names its line, there are no more.
func (t *Trace) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		rng := rand.New(rand.NewPCG(t.options.Seed, 0x7472616365)) //nolint:gosec // chance that can be repeated is the point
		width := t.Tick
		if t.options.Verbatim {
			width = 0
		}
		var first, now time.Duration
		var together []Row // that stand at now, and have not been given yet
		give := func(over time.Duration) bool {
			offsets := make([]time.Duration, len(together))
			for i := range offsets {
				offsets[i] = time.Duration(rng.Float64() * float64(over))
			}
			slices.Sort(offsets)
			for i, row := range together {
				row.At = t.played(now + offsets[i])
				if !yield(row, nil) {
					return false
				}
			}
			together = together[:0]
			return true
		}
		n := 0
		for r, err := range t.records() {
			if err != nil {
				if give(width) {
					yield(Row{}, err)
				}
				return
			}
			if n == 0 {
				first = r.at
			}
			at := max(r.at-first, now)
			if (at > now || len(together) == fullest) && !give(min(width, at-now)) {
				return
			}
			now = at
			together = append(together, r.Row)
			if n++; n == t.options.Limit {
				break
			}
		}
		give(width)
	}
}

// played is when a row is sent that stands at a time in the trace.
func (t *Trace) played(at time.Duration) time.Duration {
	if t.options.Speed == 0 || t.options.Speed == 1 {
		return at
	}
	return time.Duration(min(float64(at)/t.options.Speed, math.MaxInt64/2))
}

// line is a line of a file, without its end, and its number from 1.
type line struct {
	number int
	text   []byte
}

// longestLine is the longest line of a trace that is taken for one.
const longestLine = 16 << 20

// lines reads the file's lines that are not blank. Each is good until the next.
func (t *Trace) lines() iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		f, err := os.Open(t.Path)
		if err != nil {
			yield(line{}, t.problem("%s", reason(err)))
			return
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			yield(line{}, t.problem("is a directory; name the file in it"))
			return
		}
		scan := newScanner(f)
		number := 0
		for scan.Scan() {
			text := scan.Bytes()
			if number++; number == 1 {
				text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
			}
			if text = bytes.TrimSpace(text); len(text) > 0 && !yield(line{number, text}, nil) {
				return
			}
		}
		if err := scan.Err(); err != nil {
			yield(line{}, t.fault(number+1, scanProblem(err)))
		}
	}
}

// fault is the error of one line.
func (t *Trace) fault(number int, problem string) error {
	return fmt.Errorf("trace %s:%d: %s", t.Path, number, strings.TrimSpace(problem))
}
