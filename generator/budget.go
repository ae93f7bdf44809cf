package generator

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"weir/generator/loadmodel"
	"weir/store/call"
)

// ParseBudget reads "tokens 2000000, usd 5", or one of the two.
func ParseBudget(text string) (loadmodel.Budget, error) {
	var b loadmodel.Budget
	for _, part := range strings.Split(text, ",") {
		words := strings.Fields(part)
		bad := fmt.Errorf("%q: want 'tokens 2000000, usd 5', or one of them", text)
		if len(words) != 2 || words[0] != "tokens" && words[0] != "usd" {
			return b, bad
		}
		v, err := strconv.ParseFloat(words[1], 64)
		if err != nil || !(v > 0) || v > math.MaxInt32*1e6 {
			return b, fmt.Errorf("%q: %s %s: want a number above 0", text, words[0], words[1])
		}
		switch {
		case words[0] == "tokens" && b.Tokens == 0 && v >= 1:
			b.Tokens = int64(v)
		case words[0] == "usd" && b.USD == 0:
			b.USD = v
		default:
			return b, bad
		}
	}
	return b, nil
}

// purse holds a run to its budget. A request is sent only when the budget has
// room for all that it may cost: its prompt, and an answer as long as it is
// allowed. When it has ended what it did cost takes that one's place. So a run
// never uses more than its budget, as far as answers keep to their limits and
// the endpoint says what it used.
type purse struct {
	budget loadmodel.Budget
	prices []Price

	mu       sync.Mutex
	used     cost // by calls that have ended
	reserved cost // by calls in flight
	settled  int  // calls that have ended
	guessed  int  // of them, whose endpoint did not say what they used
}

// cost is what requests take of a budget.
type cost struct {
	tokens int64
	usd    float64
}

func (c *cost) add(o cost)      { c.tokens += o.tokens; c.usd += o.usd }
func (c *cost) subtract(o cost) { c.tokens -= o.tokens; c.usd -= o.usd }

// CheckBudget says whether the run's budget can be kept: one in dollars needs
// a price for each model.
func (r *Run) CheckBudget() error {
	_, err := r.newPurse()
	return err
}

// newPurse makes the purse of a run; nil when it has no budget. A shard has its
// part of it.
func (r *Run) newPurse() (*purse, error) {
	b := r.Budget
	if b == (loadmodel.Budget{}) && r.Plan.Model != nil {
		b = r.Plan.Model.Budget
	}
	if b == (loadmodel.Budget{}) {
		return nil, nil
	}
	if b.USD > 0 {
		if len(r.Prices) == 0 {
			return nil, errors.New("the budget is in dollars, and no price is given; say what the model's tokens cost with --price MODEL=INPUT,OUTPUT[,CACHED]")
		}
		for _, d := range r.Plan.dialects() {
			if priceOf(r.Prices, d.model) == nil {
				return nil, fmt.Errorf("the budget is in dollars, and model %q has no price; add --price %s=INPUT,OUTPUT, or one for * (any model)", d.model, d.model)
			}
		}
	}
	b.Tokens = int64(math.Ceil(float64(b.Tokens) * r.Plan.Shard.fraction()))
	b.USD *= r.Plan.Shard.fraction()
	return &purse{budget: b, prices: r.Prices}, nil
}

// most is what a request may cost.
func (p *purse) most(model string, t Turn) cost { return p.cost(model, t.Input, 0, t.Output) }

func (p *purse) cost(model string, input, cached, output int) cost {
	c := cost{tokens: int64(input + output)}
	if price := priceOf(p.prices, model); price != nil {
		cheap := 0.0
		if price.HasCached {
			cheap = (price.Input - price.Cached) * float64(cached)
		}
		c.usd = (price.Input*float64(input) - cheap + price.Output*float64(output)) / 1e6
	}
	return c
}

// take sets aside what a request may cost; false when there is not so much.
func (p *purse) take(model string, t Turn) bool {
	if p == nil {
		return true
	}
	want := p.most(model, t)
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.budget; b.Tokens > 0 && p.used.tokens+p.reserved.tokens+want.tokens > b.Tokens ||
		b.USD > 0 && p.used.usd+p.reserved.usd+want.usd > b.USD {
		return false
	}
	p.reserved.add(want)
	return true
}

// settle puts what a call did cost in the place of what was set aside. A call
// whose endpoint does not say is taken to have cost all of that, unless it was
// never answered.
func (p *purse) settle(model string, t Turn, c *call.Call) {
	if p == nil {
		return
	}
	most := p.most(model, t)
	did, guessed := most, 0
	switch u := trusted(c); {
	case u.Input.Known && u.Output.Known:
		did = p.cost(model, int(u.Input.N), int(u.CacheRead.N), int(u.Output.N))
	case c.Status == 0 || c.Status >= 400:
		did = cost{}
	default:
		guessed = 1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserved.subtract(most)
	p.used.add(did)
	p.settled++
	p.guessed += guessed
}

// spent says how the budget was used up, and how much of that is a guess.
func (p *purse) spent() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var parts []string
	if p.budget.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d tokens used, %d set aside for calls in flight", p.used.tokens, p.budget.Tokens, p.reserved.tokens))
	}
	if p.budget.USD > 0 {
		parts = append(parts, fmt.Sprintf("%.4g of %.4g dollars used, %.4g set aside", p.used.usd, p.budget.USD, max(p.reserved.usd, 0)))
	}
	guess := ""
	if p.guessed > 0 {
		guess = fmt.Sprintf("; that is an estimate: of %s, %d came without usage, and each counts as all it may have used", count(p.settled, "call", "calls"), p.guessed)
	}
	return "the budget has no room for the next request: " + strings.Join(parts, "; ") + guess
}
