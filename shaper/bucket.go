package shaper

import (
	"math"
	"time"
)

// bucket is a budget of tokens that fills with time. It may be drawn below
// empty, into debt, by whoever comes while there is something in it; the next
// one waits until the debt is paid. The zero bucket does not limit.
type bucket struct {
	perSecond float64 // 0: no limit
	most      float64
	level     float64
	at        time.Duration
}

func (b *bucket) set(perMinute, most float64, now time.Duration) {
	b.fill(now)
	fresh := b.perSecond == 0
	b.perSecond, b.at = perMinute/60, now
	b.most = most
	if most == 0 {
		b.most = math.Max(b.perSecond, 1)
	}
	if fresh || b.level > b.most {
		b.level = b.most
	}
}

func (b *bucket) fill(now time.Duration) {
	if now > b.at {
		b.level = math.Min(b.level+b.perSecond*(now-b.at).Seconds(), b.most)
		b.at = now
	}
}

// enough is the level from which a call may go.
func (b *bucket) enough() float64 { return math.Min(b.most, 1) }

// next is when a call may go.
func (b *bucket) next(now time.Duration) time.Duration {
	if b.perSecond == 0 {
		return now
	}
	b.fill(now)
	short := b.enough() - b.level
	if short <= 1e-6 {
		return now
	}
	return now + time.Duration(math.Min(math.Ceil(short/b.perSecond*1e9), float64(farAway)))
}

// farAway is later than anybody waits, and can be added to.
const farAway = 1000 * time.Hour

func (b *bucket) take(n float64) { b.level -= n }

func (b *bucket) full(now time.Duration) bool {
	b.fill(now)
	return b.perSecond == 0 || b.level >= b.most
}
