package corpus

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// samples are prompts of all kinds and languages, as many of each, with what an
// endpoint would report that counts so.
func samples(n int, count func(*Prompt) int) []Sample {
	var list []Sample
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range n {
		a := NewAuthor(o200k(), languages[i%len(languages)], 11, uint64(i))
		p := a.Prompt(kinds[i/len(languages)%len(kinds)], 300+rng.IntN(3000), i%3)
		var g Gauge
		overhead := p.Count(&g)
		list = append(list, Sample{Characters: g.Characters, Overhead: overhead, Tokens: count(&p)})
	}
	return list
}

func TestRatesAreThoseOfACounterByCharacters(t *testing.T) {
	truth := &Rates{Word: 0.8, Letter: 0.1, Digit: 0.9, Ideograph: 1.2, Other: 0.7}
	got, err := FitRates(samples(400, func(p *Prompt) int { return p.Count(truth) }))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		name      string
		got, want float64
	}{
		{"word", got.Word, truth.Word}, {"letter", got.Letter, truth.Letter}, {"digit", got.Digit, truth.Digit},
		{"ideograph", got.Ideograph, truth.Ideograph}, {"other", got.Other, truth.Other},
	} {
		if math.Abs(r.got/r.want-1) > 0.05 {
			t.Errorf("tokens a %s: want %.3f, got %.3f", r.name, r.want, r.got)
		}
	}
	if got.Residual > 0.01 || got.Samples != 400 {
		t.Errorf("want the 400 samples within 1%%, got %d within %.2f%%", got.Samples, 100*got.Residual)
	}
}

// The residual that is stated holds for prompts that were not learned from.
func TestTheResidualHoldsForOtherPrompts(t *testing.T) {
	all := samples(600, func(p *Prompt) int { return p.Count(cl100k()) })
	learned, others := all[:300], all[300:]
	r, err := FitRates(learned)
	if err != nil {
		t.Fatal(err)
	}
	over := 0
	for _, s := range others {
		if math.Abs(float64(r.tokens(s.Characters)+s.Overhead)/float64(s.Tokens)-1) > r.Residual {
			over++
		}
	}
	t.Log(r.Name())
	if over > len(others)/10 { // 5 % are meant to be
		t.Errorf("%d of %d other prompts are off by more than the residual %.1f%%", over, len(others), 100*r.Residual)
	}
	if r.Residual > 0.15 {
		t.Errorf("characters are off by %.1f%%", 100*r.Residual)
	}
}

func TestOfWhatNothingWasSeenTheUsualRatesStand(t *testing.T) {
	list := make([]Sample, 20)
	for i := range list {
		list[i] = Sample{Characters: Characters{Digits: 1000 * (i + 1)}, Tokens: 300 * (i + 1)}
	}
	r, err := FitRates(list)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(r.Digit-0.3) > 0.003 || math.Abs(r.Ideograph/usual[ofIdeograph]-1) > 1e-6 || math.Abs(r.Word/usual[ofWord]-1) > 1e-6 {
		t.Errorf("want 0.3 of digits and the usual of all else, got %+v", r)
	}
}

func TestTooFewSamplesTeachNothing(t *testing.T) {
	list := make([]Sample, 100) // of which 7 say something
	for i := range 7 {
		list[i] = Sample{Characters: Characters{Letters: 100}, Tokens: 30}
	}
	if r, err := FitRates(list); !errors.Is(err, ErrFewSamples) {
		t.Errorf("want %v, got %v, %v", ErrFewSamples, r, err)
	}
}

func TestRatesCutWhatTheyCount(t *testing.T) {
	r := &Rates{Word: 0.6, Letter: 0.1, Digit: 0.5, Ideograph: 1.4, Other: 0.5}
	text := strings.Repeat("Some words, 12 numbers; 你好世界。\n", 30)
	whole := r.Count(text)
	for n := range whole + 5 {
		begin, got := r.Cut(text, n)
		if !strings.HasPrefix(text, begin) || got != r.Count(begin) || got > n || got < min(n, whole)-1 {
			t.Fatalf("cut to %d of %d tokens: got %d tokens, which count %d", n, whole, got, r.Count(begin))
		}
	}
}

func TestPromptsByCharactersHaveTheTokensWanted(t *testing.T) {
	r := &Rates{Word: 0.7, Letter: 0.1, Digit: 0.8, Ideograph: 1.3, Other: 0.6}
	for _, kind := range kinds {
		for _, lang := range languages {
			for _, want := range []int{300, 1000, 8000} {
				p := NewAuthor(r, lang, 3, uint64(want)).Prompt(kind, want, 0)
				if got := p.Count(r); got < want-max(4, want/100) || got > want+max(4, want/100) {
					t.Errorf("%s, %s: want %d tokens, got %d", kind, lang, want, got)
				}
			}
		}
	}
}
