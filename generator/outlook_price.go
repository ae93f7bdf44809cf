package generator

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Price is what a model's tokens cost, in dollars a million. weir knows no
// price by itself: whatever it knew would soon be wrong.
type Price struct {
	Model     string // "*" is any model that has no price of its own
	Input     float64
	Output    float64
	Cached    float64 // of prompt tokens read from a prefix cache
	HasCached bool
}

// ParsePrice reads MODEL=INPUT,OUTPUT[,CACHED].
func ParsePrice(text string) (Price, error) {
	at := strings.LastIndexByte(text, '=')
	if at < 0 {
		return Price{}, fmt.Errorf("%q: want MODEL=INPUT,OUTPUT[,CACHED], dollars a million tokens", text)
	}
	p := Price{Model: text[:at]}
	parts := strings.Split(text[at+1:], ",")
	if p.Model == "" || len(parts) < 2 || len(parts) > 3 {
		return p, fmt.Errorf("%q: want MODEL=INPUT,OUTPUT[,CACHED], dollars a million tokens; * is any model", text)
	}
	for i, to := range []*float64{&p.Input, &p.Output, &p.Cached}[:len(parts)] {
		v, err := strconv.ParseFloat(strings.TrimSpace(parts[i]), 64)
		if err != nil || !(v >= 0) || math.IsInf(v, 0) {
			return p, fmt.Errorf("%q: price %q: want dollars a million tokens, 0 or more", text, parts[i])
		}
		*to = v
	}
	p.HasCached = len(parts) == 3
	return p, nil
}

// dearCache says whether a token from a cache costs more than one that is read.
func (p *Price) dearCache() bool { return p.HasCached && p.Cached > p.Input }

// priceOf finds a model's price; nil when none is given.
func priceOf(prices []Price, model string) *Price {
	var any *Price
	for i := range prices {
		switch prices[i].Model {
		case model:
			return &prices[i]
		case "*":
			any = &prices[i]
		}
	}
	return any
}

// Cost is what requests would cost. The zero Cost is unknown.
type Cost struct {
	Priced   int     // requests that have a price
	Uncached float64 // dollars, if no prompt token were read from a cache

	// Held is in dollars too, if every token that a perfect prefix cache would
	// hold were read from it. It is known when each price has one for cached
	// tokens.
	Held    float64
	noCache int // requests whose price has none

	// DearCache says that a price has more for cached tokens than for others, so
	// that Uncached is not the most that the requests could cost.
	DearCache bool
}

// HeldKnown says whether Held is.
func (c *Cost) HeldKnown() bool { return c.Priced > 0 && c.noCache == 0 }

func (c *Cost) add(p *Price, t Turn, held int) {
	if p == nil {
		return
	}
	c.Priced++
	in, out := p.Input*float64(t.Input)/1e6, p.Output*float64(t.Output)/1e6
	c.Uncached += in + out
	c.DearCache = c.DearCache || p.dearCache()
	if !p.HasCached {
		c.noCache++
	}
	c.Held += in + out - (p.Input-p.Cached)*float64(held)/1e6
}
