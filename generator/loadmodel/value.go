package loadmodel

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/proxy/wire"
)

// Plain values are read with what errors call them.

func (r *reader) string(n node, what string) string {
	s, ok := n.value.(string)
	if !ok || n.kind != "string" {
		r.fail(n.at, "%s is %s; want text in quotes", what, article(n.kind))
	}
	return s
}

func (r *reader) boolean(n node, what string) bool {
	b, ok := n.value.(bool)
	if !ok {
		r.fail(n.at, "%s is %s; want true or false", what, article(n.kind))
	}
	return b
}

func (r *reader) number(n node, what string) float64 {
	num, ok := n.value.(json.Number)
	if !ok {
		r.fail(n.at, "%s is %s; want a number", what, article(n.kind))
		return 0
	}
	f, err := num.Float64()
	if err != nil || math.IsInf(f, 0) {
		r.fail(n.at, "%s %s: too large a number; want one below 1e308", what, num)
	}
	return f
}

func (r *reader) notNegative(n node, what string) float64 {
	f := r.number(n, what)
	if f < 0 {
		r.fail(n.at, "%s %v: want 0 or more", what, f)
	}
	return f
}

func (r *reader) positive(n node, what string) float64 {
	f := r.number(n, what)
	if f <= 0 {
		r.fail(n.at, "%s %v: want more than 0", what, f)
	}
	return f
}

func (r *reader) whole(n node, what string, least int) int {
	f := r.number(n, what)
	if f != math.Trunc(f) || f < float64(least) || f > 1<<53 {
		r.fail(n.at, "%s %v: want a whole number of %d or more", what, f, least)
		return 0
	}
	return int(f)
}

// MostQPS is the most requests a second that a load model may ask for.
const MostQPS = 1_000_000

// rate reads requests a second.
func (r *reader) rate(n node, what string) float64 {
	f := r.notNegative(n, what)
	if f > MostQPS {
		r.fail(n.at, "%s %v: want at most %d", what, f, MostQPS)
	}
	return f
}

// seed reads a whole number of 64 bits, of which a float would lose some.
func (r *reader) seed(n node) uint64 {
	num, _ := n.value.(json.Number)
	if seed, err := strconv.ParseUint(num.String(), 10, 64); err == nil {
		return seed
	}
	if f, err := num.Float64(); err == nil && f > 1<<53 && f == math.Trunc(f) {
		r.fail(n.at, "seed %s: want at most %d", num, uint64(math.MaxUint64))
		return 0
	}
	return uint64(r.whole(n, "seed", 0))
}

func (r *reader) seconds(n node, what string, zero bool) time.Duration {
	read := r.positive
	if zero {
		read = r.notNegative
	}
	f := read(n, what)
	if f > 365*24*3600 {
		r.fail(n.at, "%s %v: want at most a year, 31536000", what, f)
	}
	return time.Duration(f * float64(time.Second))
}

func (r *reader) oneOf(n node, what string, words ...string) string {
	s := r.string(n, what)
	if r.err == nil && !slices.Contains(words, s) {
		near := ""
		if w := Nearest(s, words); w != "" {
			near = fmt.Sprintf(": did you mean %q?", w)
		}
		r.fail(n.at, "%s %q: want one of %s%s", what, s, strings.Join(words, ", "), near)
	}
	return s
}

func (r *reader) api(n node) wire.API {
	return wire.API(r.oneOf(n, "api", string(wire.Chat), string(wire.Completions), string(wire.Responses), string(wire.Messages), string(wire.Gemini)))
}
