package generator

import (
	"container/heap"
	"fmt"
	"strings"
	"time"
)

// Latency is what calls are said to take. The zero Latency is unknown.
type Latency struct {
	TTFT, TPOT time.Duration
	Known      bool
}

// ParseLatency reads "ttft 500ms, tpot 20ms". Without tpot answers take no time
// after their first token.
func ParseLatency(text string) (Latency, error) {
	l := Latency{}
	said := map[string]bool{}
	for _, part := range strings.Split(text, ",") {
		words := strings.Fields(part)
		if len(words) != 2 {
			return l, fmt.Errorf("%q: want 'ttft 500ms, tpot 20ms'", text)
		}
		d, err := time.ParseDuration(words[1])
		if err != nil || d < 0 || d > 24*time.Hour {
			return l, fmt.Errorf("%q: %s: want a time as 500ms or 2s", text, words[0])
		}
		switch {
		case said[words[0]]:
			return l, fmt.Errorf("%q: says %s twice", text, words[0])
		case words[0] == "ttft":
			l.TTFT = d
		case words[0] == "tpot":
			l.TPOT = d
		default:
			return l, fmt.Errorf("%q: %s is no latency; want ttft and tpot", text, words[0])
		}
		said[words[0]] = true
	}
	if !said["ttft"] {
		return l, fmt.Errorf("%q: says no ttft; want 'ttft 500ms, tpot 20ms'", text)
	}
	l.Known = true
	return l, nil
}

// of is how long a call of so many tokens takes.
func (l Latency) of(output int) time.Duration {
	return l.TTFT + time.Duration(max(output-1, 0))*l.TPOT
}

// flight follows the calls of a plan through its time. Turns of sessions lie
// ahead of the sessions that start next, so they wait in a heap: it holds what
// is under way, not the plan.
type flight struct {
	latency Latency
	ahead   happenings

	last   time.Duration // what has happened
	now    int           // calls in flight
	most   int
	mostAt time.Duration
	busy   time.Duration

	second         time.Duration
	inSecond, peak int

	open bool // how long some call takes is not known

	line   timeline
	steady steadiness
}

// happening is the start or the end of a call.
type happening struct {
	at  time.Duration
	end bool
}

type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].end && !h[j].end
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// add takes the next session. A turn starts when the one before has ended, and
// its think time; where no latency is known, calls take no time.
func (f *flight) add(s *Session) {
	f.until(s.Due)
	at := s.Due
	for i, t := range s.Turns {
		if i > 0 {
			at += t.Think
		}
		heap.Push(&f.ahead, happening{at: at})
		took := f.latency.of(t.Output)
		if f.latency.Known {
			f.open = f.open || t.Output == 0 && f.latency.TPOT > 0
			heap.Push(&f.ahead, happening{at: at + took, end: true})
			f.busy += took
			f.line.busy(at, at+took)
		}
		at += took
	}
}

// until lets happen what lies before a time.
func (f *flight) until(t time.Duration) {
	for len(f.ahead) > 0 && f.ahead[0].at < t {
		f.happen(heap.Pop(&f.ahead).(happening))
	}
}

func (f *flight) happen(h happening) {
	f.last = h.at
	if h.end {
		f.now--
		return
	}
	if second := h.at.Truncate(time.Second); second != f.second {
		f.second, f.inSecond = second, 0
	}
	f.inSecond++
	f.peak = max(f.peak, f.inSecond)
	f.line.start(h.at)
	if f.now++; f.now > f.most {
		f.most, f.mostAt = f.now, h.at
	}
}

// close lets all happen and fills in the outlook.
func (f *flight) close(o *Outlook) {
	for len(f.ahead) > 0 {
		f.happen(heap.Pop(&f.ahead).(happening))
	}
	o.PeakRate = float64(f.peak)
	o.Every, o.Moments = f.line.width(), f.line.moments
	if f.latency.Known {
		o.Most, o.MostAt, o.MostAtLeast = f.most, f.mostAt, f.open
		if f.last > 0 && !f.open {
			o.InFlight = f.busy.Seconds() / f.last.Seconds()
		}
	}
}

// timeline counts moments, of which there are never more than mostMoments: where
// time goes on, they become twice as long. The zero timeline is empty.
type timeline struct {
	moments []Moment
	seconds int // of a moment; 0 is 1
}

const mostMoments = 120

func (t *timeline) width() time.Duration { return time.Duration(max(t.seconds, 1)) * time.Second }

// moment is where a time belongs.
func (t *timeline) moment(at time.Duration) *Moment {
	for at/t.width() >= mostMoments {
		for i := range (len(t.moments) + 1) / 2 {
			m := t.moments[2*i]
			if 2*i+1 < len(t.moments) {
				m.Starts += t.moments[2*i+1].Starts
				m.Busy += t.moments[2*i+1].Busy
			}
			t.moments[i] = m
		}
		t.moments = t.moments[:(len(t.moments)+1)/2]
		t.seconds = 2 * max(t.seconds, 1)
	}
	i := int(at / t.width())
	for len(t.moments) <= i {
		t.moments = append(t.moments, Moment{})
	}
	return &t.moments[i]
}

func (t *timeline) start(at time.Duration) { t.moment(at).Starts++ }

// busy spreads a call over the moments in which it is in flight.
func (t *timeline) busy(from, to time.Duration) {
	if to <= from {
		return
	}
	t.moment(to)
	for from < to {
		end := min(from.Truncate(t.width())+t.width(), to)
		t.moment(from).Busy += (end - from).Seconds()
		from = end
	}
}

// steadiness tells how evenly sessions start (their turns come in clumps): the
// variance of their number in windows of a minute, and of ten seconds, by its mean. Chance alone (Poisson)
// gives 1. Windows lie between from and to; the last one, which may not be
// whole, does not count.
type steadiness struct {
	from    time.Duration
	to      time.Duration
	windows [2]windowed
}

var windowLengths = [2]time.Duration{time.Minute, 10 * time.Second}

// windowed is the running mean and variance of counts.
type windowed struct {
	window   int // being counted
	count    float64
	n        int // windows counted
	mean, m2 float64
}

func (s *steadiness) add(at time.Duration) {
	if at < s.from || at > s.to {
		return
	}
	for i := range s.windows {
		s.windows[i].add(int((at - s.from) / windowLengths[i]))
	}
}

func (w *windowed) add(window int) {
	for ; w.window < window; w.window++ {
		w.n++
		off := w.count - w.mean
		w.mean += off / float64(w.n)
		w.m2 += off * (w.count - w.mean)
		w.count = 0
	}
	w.count++
}

// dispersion is variance by mean; unknown with fewer than least windows, or so
// few starts in them that nothing can be seen.
func (w *windowed) dispersion(least int) (d float64, known bool) {
	if w.n < least || w.mean < 5 {
		return 0, false
	}
	return w.m2 / float64(w.n-1) / w.mean, true
}
