package corpus

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode"
)

// Characters counts the characters of a text by what they cost in tokens.
// The zero value is an empty text's.
type Characters struct {
	Words      int // begun: letters of alphabets that none precedes
	Letters    int // of alphabets
	Digits     int
	Ideographs int // Han, Kana and Hangul, which stand for syllables or words
	Others     int // marks, signs and line ends
}

func (c Characters) vector() [classes]float64 {
	return [classes]float64{float64(c.Words), float64(c.Letters), float64(c.Digits), float64(c.Ideographs), float64(c.Others)}
}

// The classes, by their places in a vector. Spaces between words cost nothing:
// encodings count them to the word that follows.
const (
	ofWord = iota
	ofLetter
	ofDigit
	ofIdeograph
	ofOther
	ofSpace
	classes = ofSpace
)

// classOfRune is a character's class; letters are of words, too.
func classOfRune(r rune) int {
	switch {
	case r == ' ':
		return ofSpace
	case r|0x20 >= 'a' && r|0x20 <= 'z':
		return ofLetter
	case r >= '0' && r <= '9':
		return ofDigit
	case r < 0x80:
		return ofOther
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
		return ofIdeograph
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return ofLetter
	case unicode.IsDigit(r):
		return ofDigit
	}
	return ofOther
}

// Gauge adds up the characters of all texts that it is given to count. No text
// has tokens for it: what is counted with it is what a prompt costs beside its
// texts. It is for one goroutine.
type Gauge struct{ Characters }

// Count adds a text's characters, and gives 0.
func (g *Gauge) Count(text string) int {
	before := ofSpace
	for _, r := range text {
		class := classOfRune(r)
		switch class {
		case ofLetter:
			g.Letters++
			if before != ofLetter {
				g.Words++
			}
		case ofDigit:
			g.Digits++
		case ofIdeograph:
			g.Ideographs++
		case ofOther:
			g.Others++
		}
		before = class
	}
	return 0
}

// Sample is a request of which both is known, its characters and what the
// endpoint counted.
type Sample struct {
	Characters
	Overhead int // tokens beside the texts', as Prompt.Count has them: of messages, calls and tools
	Tokens   int // of the whole request, by the endpoint's usage
}

// Rates count tokens by characters, where weir lacks a model's tokenizer:
// so many tokens a character of each class, fitted to what its endpoint
// reported. They are safe for concurrent use.
type Rates struct {
	// Tokens a character, above 0, and a word's beside its letters'.
	Word, Letter, Digit, Ideograph, Other float64

	Samples  int     // requests that they were fitted to
	Residual float64 // how far they are off: the 95th percentile, over those requests, of |counted − reported| / reported
}

// usual are about the rates of the public encodings, which stand where samples
// say nothing: nobody learns of ideographs from English.
var usual = [classes]float64{0.7, 0.1, 0.45, 0.75, 0.5}

const (
	leastSamples = 8
	leastRate    = 0.01
	// pull is how strongly rates are held to the usual ones: as much as a
	// hundredth of one sample's relative error.
	pull = 0.01
)

// ErrFewSamples is that rates cannot be fitted to so few requests.
var ErrFewSamples = errors.New("too few requests with usage to learn characters per token from")

// FitRates fits rates to samples, by least squares of the relative error, drawn
// a little to the usual rates. Samples without tokens beyond their overhead are
// passed over; of fewer than 8 the error is ErrFewSamples.
func FitRates(samples []Sample) (*Rates, error) {
	samples = slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool {
		return s.Tokens <= s.Overhead || s.Characters == Characters{}
	})
	if len(samples) < leastSamples {
		return nil, fmt.Errorf("%w: %d, and %d are wanted", ErrFewSamples, len(samples), leastSamples)
	}
	// The normal equations: a·rates = b.
	var a [classes][classes]float64
	var b [classes]float64
	for i := range usual {
		a[i][i] = pull / (usual[i] * usual[i])
		b[i] = pull / usual[i]
	}
	for _, s := range samples {
		x, weight := s.vector(), 1/(float64(s.Tokens)*float64(s.Tokens))
		for i := range x {
			b[i] += weight * x[i] * float64(s.Tokens-s.Overhead)
			for j := range x {
				a[i][j] += weight * x[i] * x[j]
			}
		}
	}
	// One rate after the other is put where the error is least; a rate is never
	// below leastRate, which solving at once would not keep.
	rates := usual
	for range 2000 {
		moved := 0.0
		for i := range rates {
			rest := b[i]
			for j := range rates {
				if j != i {
					rest -= a[i][j] * rates[j]
				}
			}
			next := max(rest/a[i][i], leastRate)
			moved = max(moved, math.Abs(next-rates[i]))
			rates[i] = next
		}
		if moved < 1e-9 {
			break
		}
	}
	r := &Rates{Word: rates[ofWord], Letter: rates[ofLetter], Digit: rates[ofDigit], Ideograph: rates[ofIdeograph], Other: rates[ofOther], Samples: len(samples)}
	off := make([]float64, len(samples))
	for i, s := range samples {
		off[i] = math.Abs(float64(r.tokens(s.Characters)+s.Overhead)/float64(s.Tokens) - 1)
	}
	r.Residual = Percentile95(off)
	return r, nil
}

// Percentile95 is the 95th percentile by nearest rank, of at least one value.
func Percentile95(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[int(math.Ceil(0.95*float64(len(values))))-1]
}

// Name says what the counts are good for.
func (r *Rates) Name() string {
	return fmt.Sprintf("characters (%s; learned from %d requests, 95%% of them within %.1f%%)", r.PerToken(), r.Samples, 100*r.Residual)
}

// PerToken says what a token is made of.
func (r *Rates) PerToken() string {
	return fmt.Sprintf("%.2f tokens a word and %.2f a letter of it, %.2f a digit, %.2f an ideograph, %.2f any other sign", r.Word, r.Letter, r.Digit, r.Ideograph, r.Other)
}

func (r *Rates) vector() [classes]float64 {
	return [classes]float64{r.Word, r.Letter, r.Digit, r.Ideograph, r.Other}
}

func (r *Rates) sum(c Characters) (sum float64) {
	rates, counts := r.vector(), c.vector()
	for i := range rates {
		sum += rates[i] * counts[i]
	}
	return sum
}

// tokens of so many characters.
func (r *Rates) tokens(c Characters) int { return whole(r.sum(c)) }

// whole rounds up, as a begun token is one, but not for what summing was off.
func whole(sum float64) int { return int(math.Ceil(sum - 1e-6)) }

// Count gives about how many tokens a text has.
func (r *Rates) Count(text string) int {
	var g Gauge
	g.Count(text)
	return r.tokens(g.Characters)
}

// Cut gives the longest beginning of a text that counts at most n tokens, and
// its count.
func (r *Rates) Cut(text string, n int) (string, int) {
	var rates [classes + 1]float64 // a space's is 0
	costs := r.vector()
	copy(rates[:], costs[:])
	sum, count, before := 0.0, 0, ofSpace
	for i, one := range text {
		class := classOfRune(one)
		sum += rates[class]
		if class == ofLetter && before != ofLetter {
			sum += rates[ofWord]
		}
		if whole(sum) > n {
			return text[:i], count
		}
		count, before = whole(sum), class
	}
	return text, count
}

// exactly implements Counter. Where a character is more than one token, it may
// be that character short.
func (r *Rates) exactly(text string, n int) (string, bool) {
	begin, _ := r.Cut(text, n)
	return begin, len(begin) < len(text) || r.Count(text) == n
}
