package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"weir/generator"
	"weir/generator/loadmodel"
	"weir/proxy/wire"
	"weir/store"
	"weir/store/call"
)

// isSelection says whether words name recorded calls, and no file.
func isSelection(words string) bool {
	if _, err := os.Stat(words); err == nil || words == "" {
		return false
	}
	_, err := store.ParseSelection(selectionWords(words))
	return err == nil
}

// selectionWords are the words of a selection that was written as one. A label
// alone may have spaces in its value, as that of an imported file.
func selectionWords(words string) []string {
	fields := strings.Fields(words)
	if _, err := store.ParseSelection(fields); err != nil && strings.HasPrefix(words, "label:") {
		return []string{words}
	}
	return fields
}

// almostSelection is what is wrong with words that begin as a selection does and
// name no file.
func almostSelection(words string) error {
	if _, err := os.Stat(words); err == nil || words == "" {
		return nil
	}
	_, err := store.ParseSelection(selectionWords(words))
	if unknown := (*store.UnknownSelector)(nil); errors.As(err, &unknown) {
		return nil
	}
	return err
}

// from is what the next command needs to play a file, or what a selection names.
func (f *loadFlags) from(file string) string {
	if isSelection(file) {
		return shellWords(selectionWords(file)...) + " --upstream URL" + dbFlag(f.db)
	}
	return shellWords(file) + " --upstream URL"
}

// oneSource is the file that the arguments name, or the words of a selection.
func oneSource(args []string) (string, error) {
	words := strings.Join(args, " ")
	if len(args) > 1 && !isSelection(words) {
		return "", usagef("%s: want one file, or the words of a selection, as run:7f3a scenario:chat", words)
	}
	return words, nil
}

// readRecorded makes a plan of the calls that a selection names: at their
// instants, of their sizes, each session's turns one after the other with the
// times to think between them. It reads the calls now, and no later ones.
func (a *app) readRecorded(ctx context.Context, words string, f loadFlags, given func(string) bool) (*generator.Plan, error) {
	if given("for") || given("qps") {
		return nil, usagef("--for and --qps are for load models, and %s are recorded calls; use --limit, --from, --to and --speed", words)
	}
	selection, err := store.ParseSelection(selectionWords(words))
	if err != nil {
		return nil, usage(err)
	}
	db, err := a.openToRead(ctx, f.db)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, size, r, err := spool(ctx, db, selection)
	if err != nil {
		return nil, err
	}
	if r.calls == 0 && r.blank > 0 {
		return nil, usagef("%s: the spans that were imported tell of no tokens, so nobody knows what to send", selection)
	}
	if r.calls == 0 {
		return nil, usage(&hinted{fmt.Errorf("no calls in %s for %s", db.Path, selection), "weir calls all" + dbFlag(f.db)})
	}
	m := &loadmodel.Model{Model: f.model, API: wire.API(f.api)}
	seed := chooseSeed(m, f.seed, given("seed"))
	trace, err := loadmodel.RowsIn(selection.String(), rows, size, f.trace.options(f, seed))
	if err != nil {
		return nil, usage(err)
	}
	if err := a.tellTrace(trace, m, func() {}, "calls "+selection.String()); err != nil {
		return nil, err
	}
	a.warn(r.notes())
	return &generator.Plan{Model: m, Trace: trace, Seed: seed}, nil
}

// spool writes the rows of recorded calls into a file that has no name any more:
// the database is not held open, nor are its calls in memory, while they are
// played.
func spool(ctx context.Context, db *store.DB, selection store.Selection) (rows *os.File, size int64, r *recorded, err error) {
	if rows, err = os.CreateTemp("", "weir-rows-*"); err != nil {
		return nil, 0, nil, fmt.Errorf("write down which calls to play: %w", err)
	}
	os.Remove(rows.Name()) // some systems keep it until the temporary folder is cleaned
	w := bufio.NewWriterSize(rows, 1<<20)
	r = &recorded{db: db, open: map[line]*talk{}, now: time.Now(), proxied: map[string]bool{}}
	var buf []byte
	r.write = func(row *loadmodel.Row) error {
		if buf, err = loadmodel.AppendRow(buf[:0], row); err == nil {
			_, err = w.Write(buf)
		}
		return err
	}
	if err = r.read(ctx, selection); err == nil {
		err = w.Flush()
	}
	if err == nil {
		size, err = rows.Seek(0, 1)
	}
	if err != nil {
		rows.Close()
		return nil, 0, nil, err
	}
	return rows, size, r, nil
}

// recorded turns calls, in the order of their starts, into rows.
type recorded struct {
	db    *store.DB
	write func(*loadmodel.Row) error
	now   time.Time

	first         time.Time       // start of the first call
	bytesPerToken float64         // bytes of what requests are made of; 0: it is not known
	proxied       map[string]bool // by run: the proxy's view of its calls is there
	open          map[line]*talk
	queue         []*talk // by their starts; those that wait for one before them to end
	waiting       int     // sizes of those in the queue
	room          int     // that they may take; 0: mostWaiting
	cut           int     // that did not get to wait for their next turn, for want of room
	calls         int
	blank         int // of other programs, without usage: left out
	streamless    int // of other programs, which do not say whether they were streamed
	unsized       int // without usage: sized by their bytes
	unshaped      int // without a shape
	unplanned     int // failed, or without usage and limit: their answers have no known size
}

// line is one conversation of a session: its agents, and calls beside the
// conversation, have contexts of their own.
type line struct{ run, session, agent, purpose, model string }

// talk is a row and the turns that follow it.
type talk struct {
	of     line
	row    loadmodel.Row
	input  int          // of the last turn
	blocks []wire.Block // of the last turn; nil: not known
	done   time.Time    // when its answer ended; zero: it failed, and nothing follows
	closed bool
}

// size is about how many words of memory a talk takes.
func (c *talk) size() int { return 64 + len(c.row.HashIDs) + 8*len(c.blocks) + 3*len(c.row.Then) }

// mostWaiting is the size of all talks that wait, some 32 MB: the rest of what a
// session says while others fill that is played at its own instants.
const mostWaiting = 1 << 22

// A session that was silent for so long goes on at its own instant, as one of
// its own: nothing is held for it.
const longestThought = 30 * time.Minute

// read reads the calls and writes the rows.
func (r *recorded) read(ctx context.Context, selection store.Selection) error {
	if err := r.measure(ctx, selection); err != nil {
		return err
	}
	for c, err := range r.db.Calls(ctx, selection, store.Order{By: "oldest"}) {
		if err != nil {
			return err
		}
		belongs, err := r.belongs(ctx, c)
		if err != nil {
			return err
		}
		if !belongs {
			continue
		}
		if err := r.add(ctx, c); err != nil {
			return err
		}
		if err := r.flush(c.Started()); err != nil {
			return err
		}
	}
	return r.flush(time.Time{})
}

// belongs says whether a call is to be played: one that asked a model for an
// answer, no warm-up, once. Of a call that weir's generator sent through its
// proxy the proxy's view counts, which knows of what the request was made.
func (r *recorded) belongs(ctx context.Context, c *call.Call) (bool, error) {
	if !c.WantsAnswer() || c.WarmUp || !c.Started().Before(r.now) {
		return false, nil
	}
	if c.Run == "" || c.Side != call.Client {
		return true, nil
	}
	proxied, known := r.proxied[c.Run]
	if !known {
		of, err := store.ParseSelection([]string{"run:" + c.Run})
		if err != nil {
			return false, err
		}
		for other, err := range r.db.Calls(ctx, of, store.Order{By: "oldest", Limit: 100}) {
			if err != nil {
				return false, err
			}
			proxied = proxied || other.Side == call.Proxy
		}
		r.proxied[c.Run] = proxied
	}
	return !proxied, nil
}

// add puts a call behind the turn that it follows, or begins a row with it.
func (r *recorded) add(ctx context.Context, c *call.Call) error {
	if c.Side == call.Imported && !c.Usage.Input.Known && !c.Usage.Output.Known {
		r.blank++ // nothing says how large it was, not even its bytes
		return nil
	}
	if c.StreamUnknown() {
		r.streamless++
	}
	if r.calls++; r.calls == 1 {
		r.first = c.Started()
	}
	shape, err := r.shape(ctx, c)
	if err != nil {
		return err
	}
	r.place(c, shape)
	return nil
}

// place does so with a call whose shape is known.
func (r *recorded) place(c *call.Call, shape []wire.Block) {
	input, output := r.sizes(c)
	of := line{c.Run, c.Session, c.Agent, c.Purpose, c.Request.Model}
	var done time.Time
	if c.Outcome == call.OK {
		done = c.Done.Time()
	}
	if before := r.open[of]; c.Session != "" && before.leadsTo(c, input, shape) {
		think := c.Started().Sub(before.done)
		r.waiting -= before.size()
		before.row.Then = append(before.row.Then, loadmodel.FollowUp{Input: input, Output: output, Think: think})
		before.input, before.blocks, before.done = input, shape, done
		r.waiting += before.size()
		return
	} else if before != nil {
		before.closed = true
	}
	next := &talk{of: of, input: input, blocks: shape, done: done, closed: c.Session == ""}
	next.row = loadmodel.Row{
		At: c.Started().Sub(r.first), Input: input, Output: output, Model: c.Request.Model, Session: c.Session,
		HashIDs: r.hashIDs(shape, input), Failed: c.Outcome != call.OK, Scenario: c.Scenario, Whole: !c.Request.Stream && !c.Streamed && !c.StreamUnknown(),
	}
	if wire.For(c.API) != nil {
		next.row.API = c.API
	}
	if c.Session != "" {
		next.row.Turn = max(c.Turn, 1)
		r.open[of] = next
	}
	r.queue = append(r.queue, next)
	r.waiting += next.size()
}

// leadsTo says whether a call carries a conversation on: it came after the
// answer, and holds what was said before.
func (c *talk) leadsTo(next *call.Call, input int, shape []wire.Block) bool {
	if c == nil || c.closed || c.done.IsZero() || next.Started().Before(c.done) || next.Started().Sub(c.done) > longestThought || input < c.input {
		return false
	}
	return c.blocks == nil || shape == nil || alike(c.blocks, shape) == len(c.blocks)
}

// alike is how many blocks two requests begin with in common.
func alike(a, b []wire.Block) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// flush writes the rows that nothing can follow any more, in the order of their
// starts. The zero time is the end of all calls.
func (r *recorded) flush(now time.Time) error {
	for len(r.queue) > 0 {
		c := r.queue[0]
		over := c.closed || now.IsZero() || c.done.IsZero() || now.Sub(c.done) > longestThought
		if !over && r.waiting <= cmp.Or(r.room, mostWaiting) {
			return nil
		}
		if !over {
			r.cut++
		}
		r.waiting -= c.size()
		c.closed = true
		if err := r.write(&c.row); err != nil {
			return fmt.Errorf("write down which calls to play: %w", err)
		}
		if r.open[c.of] == c {
			delete(r.open, c.of)
		}
		r.queue[0] = nil
		r.queue = r.queue[1:]
	}
	return nil
}

// sizes are the tokens of a call's prompt and answer: as the endpoint reported
// them, else as they were planned, else as the bytes suggest.
func (r *recorded) sizes(c *call.Call) (input, output int) {
	usage := c.Usage
	if c.UsageSource == call.UsageSuspicious && c.Side != call.Imported { // of those, what contradicts is gone
		usage = wire.Usage{}
	}
	in, out := usage.Input, usage.Output
	if !in.Known {
		in = c.ExpectedInput
	}
	if !in.Known {
		in = wire.N(int64(float64(c.RequestBytes) / cmp.Or(r.bytesPerToken, 4)))
		r.unsized++
	}
	if !out.Known {
		out = c.ExpectedOutput
	}
	if !out.Known && c.Outcome == call.OK {
		out = c.Request.MaxTokens
	}
	if !out.Known {
		r.unplanned++
	}
	return count(in), max(count(out), 1)
}

func count(c wire.Count) int { return int(min(max(c.N, 0), math.MaxInt32)) }

// notes say what had to be guessed.
func (r *recorded) notes() (notes []string) {
	if r.blank > 0 {
		notes = append(notes, fmt.Sprintf("%s left out: their spans do not tell of tokens", counted(r.blank, "imported call")))
	}
	if r.streamless > 0 {
		notes = append(notes, partly(r.streamless, r.calls, "call", "does", "do")+" not say whether a stream came: streams are asked for")
	}
	if r.unsized > 0 {
		notes = append(notes, partly(r.unsized, r.calls, "call", "has", "have")+" no usage: prompts are then sized by their bytes")
	}
	if r.unplanned > 0 {
		notes = append(notes, partly(r.unplanned, r.calls, "call", "does", "do")+" not tell how long the answer was: at least 1 token is asked for")
	}
	if r.cut > 0 {
		notes = append(notes, fmt.Sprintf("%s split, as very many other calls came before a next turn: that turn is played at its own instant, whenever the answer before it ends", counted(r.cut, "session")))
	}
	switch {
	case r.unshaped == r.calls:
		notes = append(notes, "no shapes of requests were kept (--keep shape): prompts share nothing but what a session's later turns repeat")
	case r.unshaped > 0:
		notes = append(notes, partly(r.unshaped, r.calls, "call", "has", "have")+" no shape: what has none shares nothing with others")
	}
	return notes
}
