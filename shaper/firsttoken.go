package shaper

import (
	"math"
	"time"
)

// firstTokens tells from how long first tokens take whether an endpoint has
// too much to do. Times vary several-fold where nothing is wrong, and models
// differ more than that, so each model is held against itself: the last calls'
// mean against the usual one, both of logarithms, by which one very late token
// counts little, and no difference is taken for a sign that as many calls may
// show by chance.
type firstTokens struct {
	models map[[2]string]*firstToken // by upstream and model
	known  bool                      // what is usual of one of them at least
}

// firstToken is a model's, in the logarithm of seconds for an uncached token.
type firstToken struct {
	usual    float64
	variance float64
	n        float64       // calls that these rest on; 0: not known yet
	at       time.Duration // when they were learned last
	slowed   bool          // so the last look said

	last struct { // calls, since the last look at them
		n            int
		sum, squares float64
	}
}

const (
	slow     = 3.0 // times the usual TTFT, at least, are a sign
	certain  = 4.0 // standard errors, at least, are one
	fewest   = 8   // calls are looked at together
	most     = 20
	steady   = 100              // calls, after which what is usual follows the time
	usualFor = 10 * time.Minute // in which it does so, for it changes
	aloneFor = time.Minute      // likewise, while so slow with one call in flight, which does not congest

	// usualVariance is what is expected of calls, of which as many as fewest
	// stand beside those that were seen: of so few it is not known well.
	usualVariance = 0.25

	manyModels = 64

	// freeTokens is what a call costs before its first token, in tokens.
	freeTokens = 500
)

// heard takes down a call's TTFT, while so many may be in flight, and says
// whether fewer should be, since the first tokens have become slow, and whether
// more may be: not before it is known that these do not make them slow.
func (f *firstTokens) heard(now time.Duration, a *Ask, st *Settlement, level float64) (fewer, more bool) {
	key := [2]string{a.Upstream, a.Model}
	t := f.models[key]
	if t == nil {
		if f.models == nil || len(f.models) >= manyModels {
			f.models = map[[2]string]*firstToken{}
		}
		t = &firstToken{}
		f.models[key] = t
	}
	cost := math.Log(st.TTFT.Seconds() / float64(fresh(a, st)+freeTokens))
	t.last.n++
	t.last.sum += cost
	t.last.squares += cost * cost
	if t.last.n >= min(max(int(level), fewest), most) {
		t.slowed = t.look(now, level < 2)
		fewer, f.known = t.slowed, true
	}
	return fewer, f.known && !t.slowed
}

// restart leaves out the calls since the last look, since things have changed.
func (f *firstTokens) restart() {
	for _, t := range f.models {
		t.last.n, t.last.sum, t.last.squares = 0, 0, 0
	}
}

// look holds the last calls against what is usual, and learns from them what
// is, unless it is what they differ from. alone says that no other call of
// ours could slow them.
func (t *firstToken) look(now time.Duration, alone bool) (slowed bool) {
	n := float64(t.last.n)
	mean := t.last.sum / n
	variance := max(t.last.squares-n*mean*mean, 0) / (n - 1)
	t.last.n, t.last.sum, t.last.squares = 0, 0, 0
	since := now - t.at
	off := mean - t.usual
	expected := (t.variance*t.n + usualVariance*fewest) / (t.n + fewest)
	sign := math.Max(math.Log(slow), certain*math.Sqrt(expected*(1/n+1/t.n)))
	learn := 1 - math.Exp(-float64(since)/float64(usualFor))
	switch {
	case t.n == 0 || off < -sign: // nothing was known, or nothing good
		t.usual, t.variance, t.n, t.at = mean, variance, n, now
		return false
	case off > sign && !alone:
		return true
	case off > sign:
		learn = 1 - math.Exp(-float64(since)/float64(aloneFor))
		slowed = true
	case t.n < steady:
		learn = math.Max(learn, n/(t.n+n))
	}
	t.usual += learn * off
	t.variance += learn * (variance - t.variance)
	t.n = math.Min(t.n+n, steady)
	t.at = now
	return slowed
}
