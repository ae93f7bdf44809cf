package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"weir/proxy/wire"
	"weir/shaper"
	"weir/store/call"
)

// arrival is one read from the upstream.
type arrival struct {
	bytes    []byte
	received call.Instant
	err      error
}

// mostHeld is how many reads, of at most smallRead each, are taken from the
// upstream before the client has got them: then it has to wait too.
const mostHeld = 256

// takeReads reads the upstream's answer as it comes, so that its instants are
// the upstream's however long the client is kept waiting.
func takeReads(from io.Reader, to chan<- arrival, stop <-chan struct{}) {
	buf := smallBuffers.Get().(*[smallRead]byte)
	defer smallBuffers.Put(buf)
	for {
		n, err := from.Read(buf[:])
		if n == 0 && err == nil {
			continue
		}
		select {
		case to <- arrival{bytes.Clone(buf[:n]), call.Now(), err}:
		case <-stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// way is where the answer stands on its way to the client.
type way struct {
	out  *http.ResponseController
	how  call.End     // with the error that ended it
	last call.Instant // when the event with output before was let go

	events  wire.EventReader
	outputs int  // events with output so far
	slow    bool // the first token is held up

	ping  <-chan time.Time // nil: no pings are due
	ticks *time.Ticker
	said  []byte // a ping

	joined  []byte // written as one, soon
	waiting []piece
	frames  int // of them, events
	window  *time.Timer
	due     <-chan time.Time

	began   bool          // something was written
	free    call.Instant  // when the line can take more
	writing time.Duration // in writes so far
}

// piece is what the upstream sent of what waits to be written.
type piece struct {
	raw      []byte
	received call.Instant
	whole    bool // it is a document
}

// copy passes the body on, and makes it worse.
func (w *worse) copy(from io.ReadCloser, out *http.ResponseController) (call.End, error) {
	w.out, w.free = out, call.Now()
	w.events.Format = w.x.format
	h := w.find(shaper.Stall)
	w.slow = w.find(shaper.SlowFirstToken) != nil || w.find(shaper.Bandwidth) != nil || w.find(shaper.Coalesce) != nil || h != nil && h.Event == 1
	w.startPings()
	defer w.stopTimers()
	arrivals, stop := make(chan arrival, mostHeld), make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() { takeReads(from, arrivals, stop) })
	defer reading.Wait()
	defer from.Close()
	defer close(stop)
	err := w.carry(arrivals)
	w.stamp("no occasion in this answer")
	if errors.Is(err, io.EOF) {
		return call.EndClean, nil
	}
	return w.how, err
}

// carry gives io.EOF at a clean end.
func (w *worse) carry(arrivals <-chan arrival) error {
	for {
		a, err := w.wait(nil, arrivals, true)
		if err != nil {
			return err
		}
		take := func(raw []byte, f *wire.Frame) error { return w.take(raw, f, a.received) }
		if len(a.bytes) > 0 {
			if err := w.feed(a.bytes, take); err != nil {
				return err
			}
		}
		if a.err == nil {
			continue
		}
		ended := a.err
		if !errors.Is(ended, io.EOF) {
			w.how = call.EndBroken
			if isTimeout(ended) {
				w.how = call.EndTimeout
			}
			if w.x.r.Context().Err() != nil {
				w.how, ended = w.x.left(ended)
			}
		}
		how := w.how
		if err := w.sight.close(errors.Is(ended, io.EOF), take); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
		w.how = how
		return ended
	}
}

// wait waits for a time, for a read, or for both. Between two events, pings go
// out meanwhile, and so does what was joined long enough. It ends at once when
// the client leaves.
func (w *worse) wait(until <-chan time.Time, arrivals <-chan arrival, between bool) (arrival, error) {
	for {
		ping, due := w.ping, w.due
		if !between {
			ping, due = nil, nil
		}
		var err error
		select {
		case <-until:
			return arrival{}, nil
		case a := <-arrivals:
			return a, nil
		case <-ping:
			err = w.sendPing()
		case <-due:
			err = w.flush()
		case <-w.x.r.Context().Done():
			w.how, err = w.x.left(w.x.r.Context().Err())
		}
		if err != nil {
			return arrival{}, err
		}
	}
}

// pause waits until an instant.
func (w *worse) pause(until call.Instant, between bool) error {
	d := time.Duration(until - call.Now())
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	_, err := w.wait(t.C, nil, between)
	return err
}

// take passes a piece on, after all that befalls it.
func (w *worse) take(raw []byte, f *wire.Frame, received call.Instant) error {
	if f == nil {
		return w.put(raw, piece{raw: raw, received: received}, false)
	}
	whole := w.framing == wire.Whole
	p := piece{raw: raw, received: received, whole: whole}
	if whole || w.events.Read(*f) == nil && w.events.Event.Output() != 0 {
		w.outputs++
		if err := w.befall(raw, f, received, whole); err != nil {
			return err
		}
		if w.find(shaper.PingsThroughout) == nil {
			w.ping = nil
		}
	}
	return w.put(w.withoutUsage(raw, f), p, true)
}

// befall holds an event with output up, or ends the stream in its place.
func (w *worse) befall(raw []byte, f *wire.Frame, received call.Instant, whole bool) error {
	due := func(kind shaper.ImpairmentKind) *harm {
		if h := w.find(kind); h != nil && !h.done && (whole || w.outputs >= h.Event) {
			return h
		}
		return nil
	}
	if h := due(shaper.SlowFirstToken); h != nil && w.outputs == 1 {
		h.done = true
		if err := w.pause(received+call.Instant(h.Time), true); err != nil {
			return err
		}
	}
	if h := due(shaper.Stall); h != nil {
		h.done = true
		if err := w.pause(call.Now()+call.Instant(h.Time), true); err != nil {
			return err
		}
	}
	if h := w.find(shaper.SlowTokens); h != nil && w.outputs > 1 {
		h.done = true
		if err := w.pause(w.last+call.Instant(float64(time.Second)/h.Number), true); err != nil {
			return err
		}
	}
	w.last = call.Now()
	if h := due(shaper.ErrorEvent); h != nil && !whole {
		h.done = true
		return w.fail(received)
	}
	if h := due(shaper.Reset); h != nil {
		h.done = true
		if err := w.flush(); err != nil {
			return err
		}
		w.x.reset()
		return w.broken()
	}
	at := 0
	if h := due(shaper.CutInRune); h != nil {
		at = insideRune(raw)
		h.done = at > 0
	}
	if h := due(shaper.Cut); h != nil && at == 0 {
		h.done = true
		at = max(min(len(raw)/2, len(raw)-3), 1)
	}
	if at == 0 {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.send(raw[:at], piece{raw: raw[:at], received: received}); err != nil {
		return err
	}
	return w.broken()
}

func (w *worse) broken() error {
	w.how = call.EndBroken
	return errOnPurpose
}

// insideRune finds a place inside a character of several bytes; 0 where there
// is none.
func insideRune(raw []byte) int {
	for i := 0; i < len(raw); {
		_, n := utf8.DecodeRune(raw[i:])
		if n > 1 {
			return i + 1
		}
		i += n
	}
	return 0
}

// fail ends the stream with an error event.
func (w *worse) fail(received call.Instant) error {
	if err := w.flush(); err != nil {
		return err
	}
	said := wire.NewWriter(w.x.format, w.x.c.ResponseID, w.x.c.Request.Model, wire.Usage{}, wire.WriterOptions{Framing: w.framing}).
		Error(nil, &wire.Error{Status: 529, Type: "overloaded_error", Message: "weir ends this stream on purpose, as --impair says: overloaded"})
	if rest, opened := bytes.CutPrefix(said, []byte{'['}); opened && w.framing == wire.JSONArray && w.began {
		said = append([]byte(",\r\n"), rest...)
	}
	if err := w.send(said, piece{raw: said, received: received}); err != nil {
		return err
	}
	return io.EOF
}

// withoutUsage is the piece as the client gets it.
func (w *worse) withoutUsage(raw []byte, f *wire.Frame) []byte {
	h := w.find(shaper.NoUsage)
	if h == nil || f.Oversize {
		return raw
	}
	rest := wire.WithoutUsage(w.x.c.API, f.Data)
	if len(rest) == len(f.Data) {
		return raw
	}
	h.done = true
	if before, after, found := bytes.Cut(raw, f.Data); found && len(rest) > 0 {
		return append(append(bytes.Clone(before), rest...), after...)
	}
	if len(rest) == 0 {
		return nil
	}
	return append(append([]byte("data: "), bytes.ReplaceAll(rest, []byte{'\n'}, []byte{' '})...), "\n\n"...) // it stood in several lines
}
