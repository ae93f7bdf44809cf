package loadmodel

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"gonum.org/v1/gonum/stat/distuv"
)

// A client of ServeGen is two files: chunk-N-trace.csv has the rate of its
// requests and how their gaps are spread, window by window; chunk-N-dataset.json
// has how their lengths are, in longer windows. Its requests are drawn from
// both: times and lengths are of its kind, and none of them was recorded.

const (
	clientTrace   = "-trace.csv"
	clientDataset = "-dataset.json"
)

// clientFiles are the clients' trace files in a folder and the folders below it.
func clientFiles(path string) (files []string, err error) {
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasPrefix(entry.Name(), "chunk-") && strings.HasSuffix(entry.Name(), clientTrace) {
			files = append(files, file)
		}
		return err
	})
	return files, err
}

// isWindow says whether a line is one of a client's trace file.
func isWindow(line []byte) bool {
	_, problem := parseWindow(string(line))
	return problem == ""
}

// window is a stretch of a client's time.
type window struct {
	start float64 // seconds
	rate  float64 // a second
	gaps  gaps
}

// gaps are how far requests lie apart, of mean 1: the rate stretches them.
type gaps struct {
	family string // "Gamma", "Weibull" or empty: exponential
	shape  float64
}

// parseWindow reads start, rate, CV of the gaps, family, shape and scale. The
// rate says what the scale would, and the shape what the CV would.
func parseWindow(text string) (w window, problem string) {
	fields := strings.Split(text, ",")
	if len(fields) != 6 {
		return w, fmt.Sprintf("it has %d columns; want start, rate, CV, family, shape and scale", len(fields))
	}
	for i, field := range fields {
		fields[i] = strings.TrimSpace(field)
	}
	read := func(name string, i int, most float64) (value float64) {
		value, err := strconv.ParseFloat(fields[i], 64)
		if problem == "" && (err != nil || !(value >= 0 && value <= most)) {
			problem = fmt.Sprintf("the %s %s is no number from 0 to %g", name, shown(fields[i]), most)
		}
		return value
	}
	w = window{start: read("start", 0, 1e9), rate: read("rate", 1, 1e6), gaps: gaps{fields[3], read("shape", 4, 1e6)}}
	switch {
	case problem != "":
	case w.gaps.family != "" && w.gaps.family != "Gamma" && w.gaps.family != "Weibull":
		problem = fmt.Sprintf("the family %s is not known; want Gamma, Weibull or nothing", shown(w.gaps.family))
	case w.rate > 0 && w.gaps.family != "" && w.gaps.shape < 0.01:
		problem = fmt.Sprintf("the shape %g is no shape of a %s distribution; want 0.01 or more", w.gaps.shape, w.gaps.family)
	}
	return w, problem
}

// draw draws a gap.
func (g gaps) draw(rng *rand.Rand) float64 {
	switch g.family {
	case "Gamma":
		return distuv.Gamma{Alpha: g.shape, Beta: g.shape, Src: rng}.Rand()
	case "Weibull":
		return math.Pow(rng.ExpFloat64(), 1/g.shape) / math.Gamma(1+1/g.shape)
	}
	return rng.ExpFloat64()
}

// first draws how long one who comes at any moment waits, so that each window
// holds as many requests as it means to, on average: any part of a gap, and
// long gaps are come into more often (see Arrivals.first).
func (g gaps) first(rng *rand.Rand) float64 {
	switch g.family {
	case "Gamma":
		return rng.Float64() * distuv.Gamma{Alpha: g.shape + 1, Beta: g.shape, Src: rng}.Rand()
	case "Weibull":
		biased := distuv.Gamma{Alpha: 1 + 1/g.shape, Beta: 1, Src: rng}.Rand()
		return rng.Float64() * math.Pow(biased, 1/g.shape) / math.Gamma(1+1/g.shape)
	}
	return rng.ExpFloat64()
}

// lengths is a distribution of token counts: the counts, and the shares of the
// requests that have at most so many.
type lengths struct {
	tokens []int32
	upTo   []float64
}

func (l *lengths) draw(rng *rand.Rand) int {
	u := rng.Float64() * l.upTo[len(l.upTo)-1]
	return int(l.tokens[min(sort.SearchFloat64s(l.upTo, u), len(l.tokens)-1)])
}

// parseLengths reads a distribution as Python writes a dict: "{50: 0.23, 51: 0.3}".
func parseLengths(text string) (*lengths, error) {
	inner, opened := strings.CutPrefix(strings.TrimSpace(text), "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !opened || !closed {
		return nil, fmt.Errorf("%s is no distribution; want {tokens: share, …}", shown(text))
	}
	var l lengths
	var sum float64
	for pair := range strings.SplitSeq(inner, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, ":")
		tokens, err := strconv.ParseFloat(strings.TrimSpace(key), 64)
		share, err2 := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || err2 != nil || !(tokens >= 0 && tokens <= math.MaxInt32) || !(share >= 0 && share <= 1e12) {
			return nil, fmt.Errorf("%s is no pair of tokens and their share", shown(pair))
		}
		sum += share
		l.tokens, l.upTo = append(l.tokens, int32(tokens)), append(l.upTo, sum)
	}
	if sum <= 0 {
		return nil, nil // a window in which nothing was recorded
	}
	return &l, nil
}

// dataset is how a client's requests are in the time from start on.
type dataset struct {
	start         float64
	input, output *lengths
}

// client is a client of ServeGen, with the request that it makes next.
type client struct {
	windows  []window
	datasets []dataset
	seed     uint64

	rng    *rand.Rand
	window int     // of windows
	at     float64 // seconds since the window's start; negative: it has not begun
	next   time.Duration
}

// readClient reads the two files of a client.
func (t *Trace) readClient(path string, from time.Duration) (*client, error) {
	c := &client{seed: t.options.Seed ^ xxhash.Sum64String(filepath.Base(path)), at: -1}
	for l, err := range t.linesOf(path) {
		if err != nil {
			return nil, err
		}
		w, problem := parseWindow(string(l.text))
		if n := len(c.windows); problem == "" && n > 0 && w.start <= c.windows[n-1].start {
			problem = "the window begins before the one above it"
		}
		if problem != "" {
			return nil, fmt.Errorf("trace %s:%d: %s; mend the row or take it out", path, l.number, problem)
		}
		c.windows = append(c.windows, w)
	}
	if len(c.windows) == 0 {
		return nil, t.problem("%s has no windows", filepath.Base(path))
	}
	for c.window+1 < len(c.windows) && c.windows[c.window+1].start <= from.Seconds() {
		c.window++ // nobody asks for what was before
	}
	return c, t.readDatasets(c, strings.TrimSuffix(path, clientTrace)+clientDataset)
}

func (t *Trace) readDatasets(c *client, path string) error {
	bad := func(problem string) error { return t.problem("%s: %s", filepath.Base(path), problem) }
	b, err := os.ReadFile(path)
	if err != nil {
		return bad(reason(err) + " (it says how long the client's requests are)")
	}
	var file map[string]struct {
		Input  string `json:"input_tokens"`
		Output string `json:"output_tokens"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		return bad(err.Error())
	}
	for start, d := range file {
		seconds, err := strconv.ParseFloat(start, 64)
		if err != nil {
			return bad(fmt.Sprintf("the window %s does not begin at a number of seconds", shown(start)))
		}
		input, err := parseLengths(d.Input)
		output, err2 := parseLengths(d.Output)
		if err != nil || err2 != nil {
			return bad(fmt.Sprintf("window %s: %v", start, cmp.Or(err, err2)))
		}
		if input != nil && output != nil {
			c.datasets = append(c.datasets, dataset{seconds, input, output})
		}
	}
	if len(c.datasets) == 0 {
		return bad("no window says how long requests are; want {\"0\": {\"input_tokens\": \"{50: 0.2, …}\", \"output_tokens\": …}}")
	}
	sort.Slice(c.datasets, func(i, j int) bool { return c.datasets[i].start < c.datasets[j].start })
	return nil
}

// advance finds the next request; false when there is none.
func (c *client) advance() bool {
	for ; c.window < len(c.windows); c.window, c.at = c.window+1, -1 {
		w := &c.windows[c.window]
		if w.rate <= 0 {
			continue
		}
		if c.at < 0 { // a window's chance is its own, so that those before need not be drawn
			c.rng = rand.New(rand.NewPCG(c.seed, uint64(c.window))) //nolint:gosec // chance that can be repeated is the point
			c.at = w.gaps.first(c.rng) / w.rate
		} else {
			c.at += w.gaps.draw(c.rng) / w.rate
		}
		if c.at < c.length() {
			c.next = time.Duration((w.start + c.at) * float64(time.Second))
			return true
		}
	}
	return false
}

// length is how long the window is; the last is as long as the one before.
func (c *client) length() float64 {
	switch last := len(c.windows) - 1; {
	case c.window < last:
		return c.windows[c.window+1].start - c.windows[c.window].start
	case last > 0:
		return c.windows[last].start - c.windows[last-1].start
	}
	return 600
}

// record draws the request that was found.
func (c *client) record() record {
	at := c.windows[c.window].start + c.at
	n := sort.Search(len(c.datasets), func(i int) bool { return c.datasets[i].start > at })
	d := &c.datasets[max(n-1, 0)]
	return record{Row: Row{Input: d.input.draw(c.rng), Output: d.output.draw(c.rng)}, at: c.next}
}

// clients are clients in the order of their next requests.
type clients []*client

func (c clients) Len() int           { return len(c) }
func (c clients) Less(i, j int) bool { return c[i].next < c[j].next }
func (c clients) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *clients) Push(x any)        { *c = append(*c, x.(*client)) }
func (c *clients) Pop() any {
	last := len(*c) - 1
	x := (*c)[last]
	*c = (*c)[:last]
	return x
}

// clientRecords draws the requests of one client, or of a folder's together.
func (t *Trace) clientRecords() iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		all, err := t.clients()
		if err != nil {
			yield(record{}, err)
			return
		}
		for len(*all) > 0 {
			c := (*all)[0]
			if !yield(c.record(), nil) {
				return
			}
			if c.advance() {
				heap.Fix(all, 0)
			} else {
				heap.Pop(all)
			}
		}
	}
}

// clients reads the clients of a file or folder that make any request.
func (t *Trace) clients() (*clients, error) {
	files := []string{t.Path}
	if info, err := os.Stat(t.Path); err == nil && info.IsDir() {
		if files, err = clientFiles(t.Path); err != nil {
			return nil, t.problem("%s", reason(err))
		}
	} else if !strings.HasSuffix(t.Path, clientTrace) {
		return nil, t.problem("is no client of ServeGen; want chunk-N%s, beside it chunk-N%s", clientTrace, clientDataset)
	}
	all := &clients{}
	for _, file := range files {
		c, err := t.readClient(file, t.options.From)
		if err != nil {
			return nil, err
		}
		if c.advance() {
			*all = append(*all, c)
		}
	}
	heap.Init(all)
	return all, nil
}
