package proxy

import (
	"time"

	"weir/proxy/wire"
	"weir/shaper"
	"weir/store/call"
)

// mostJoined bounds what waits to be written as one.
const mostJoined = 256 << 10

// put passes a piece on as sent, or joins it to others.
func (w *worse) put(sent []byte, p piece, event bool) error {
	h := w.find(shaper.Coalesce)
	if h == nil || w.dark || w.framing == wire.Whole {
		return w.send(sent, p)
	}
	h.done = true
	w.joined = append(w.joined, sent...)
	w.waiting = append(w.waiting, p)
	if event {
		w.frames++
	}
	if h.Number > 0 && w.frames >= int(h.Number) || len(w.joined) >= mostJoined {
		return w.flush()
	}
	if h.Time > 0 && w.due == nil {
		w.window = time.NewTimer(h.Time)
		w.due = w.window.C
	}
	return nil
}

// flush writes what was joined.
func (w *worse) flush() error {
	if w.window != nil {
		w.window.Stop()
	}
	w.window, w.due, w.frames = nil, nil, 0
	sent, pieces := w.joined, w.waiting
	w.joined, w.waiting = nil, nil
	if len(pieces) == 0 {
		return nil
	}
	return w.send(sent, pieces...)
}

// send writes bytes and lets the meter look at the pieces that they were. What
// is held back of them is measured all the same.
func (w *worse) send(sent []byte, pieces ...piece) error {
	before := w.writing
	err := w.write(sent)
	delivered := call.Now()
	c := w.x.c
	for _, p := range pieces {
		had := c.FirstToken.Reached()
		w.x.measure(p.raw, p.received, delivered)
		if w.slow && !had && (c.FirstToken.Reached() || p.whole) {
			c.Injected = max(time.Duration(delivered-p.received)-(w.writing-before), 0)
		}
	}
	return err
}

// slicesPerSecond is into how many writes a second a slow line is cut.
const slicesPerSecond = 20

// write writes and flushes, as fast as the line is.
func (w *worse) write(p []byte) error {
	line := w.find(shaper.Bandwidth)
	for len(p) > 0 {
		n := len(p)
		if line != nil {
			line.done = true
			n = min(n, max(int(line.Number/slicesPerSecond), 1))
			w.free = max(w.free, call.Now()) + call.Instant(float64(n)/line.Number*float64(time.Second))
			if err := w.pause(w.free, false); err != nil {
				return err
			}
		}
		begun := call.Now()
		_, err := w.x.to.Write(p[:n])
		if err == nil {
			err = w.out.Flush()
		}
		took := time.Duration(call.Now() - begun)
		w.writing += took
		w.x.c.WriteBlocked += took
		w.began = true
		if err != nil {
			w.how, err = w.x.left(err)
			return err
		}
		p = p[n:]
	}
	return nil
}

// startPings begins to send pings, where the answer can have any.
func (w *worse) startPings() {
	h := w.find(shaper.PingsThroughout)
	if h == nil {
		h = w.find(shaper.Pings)
	}
	if h == nil {
		return
	}
	w.said = wire.NewWriter(w.x.format, "", "", wire.Usage{}, wire.WriterOptions{}).Ping(nil)
	w.ticks = time.NewTicker(time.Duration(float64(time.Second) / h.Number))
	w.ping = w.ticks.C
}

// sendPing sends one, which is none of the upstream's and is not measured.
func (w *worse) sendPing() error {
	if w.dark {
		w.ping = nil // nobody knows where an event ends
		return nil
	}
	for _, kind := range []shaper.ImpairmentKind{shaper.PingsThroughout, shaper.Pings} {
		if h := w.find(kind); h != nil {
			h.done = true
			break
		}
	}
	return w.write(w.said)
}

func (w *worse) stopTimers() {
	if w.ticks != nil {
		w.ticks.Stop()
	}
	if w.window != nil {
		w.window.Stop()
	}
}
