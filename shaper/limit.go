package shaper

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limit says how calls may pass a lane. What is zero does not limit.
type Limit struct {
	Requests float64 // a second
	Burst    int     // requests that may go at once after a pause; 0 is 1

	// Tokens a minute. A call may go while any are left, however many it will
	// use; what it uses beyond them is waited for by the next one.
	Tokens       float64 // input and output together
	InputTokens  float64
	OutputTokens float64
	BurstTokens  float64 // tokens that a pause may save; 0 is what a second brings

	// CachedWeight is how much of a token an input token counts that came from
	// the provider's cache, 0 to 1; nil leaves it to the call.
	CachedWeight *float64

	InFlight int  // calls whose stream has not ended
	Adaptive bool // find that number: InFlight, if given, is the most

	Queue    int           // calls that may wait; 0 is 1,000, below 0 none
	Wait     time.Duration // that a call may wait from its arrival; 0 is 2 minutes
	Priority Priority      // of the lane's calls; 0 leaves it to the other lanes
	Share    float64       // of the lane's scenario beside the others in a queue; 0 is 1
	Retries  int           // times that a call is sent again which the endpoint refused
	NoHold   bool          // pass over what the endpoint says of its limits
}

const (
	defaultQueue = 1000
	defaultWait  = 2 * time.Minute
)

// Priority is a class of calls: none of a class goes while one of a higher
// class waits for the same. 0 is not said, and is Normal in the end.
type Priority int8

// The classes.
const (
	High Priority = iota + 1
	Normal
	Low
)

var priorities = []string{"", "high", "normal", "low"}

func (p Priority) String() string {
	if p < High || p > Low {
		return ""
	}
	return priorities[p]
}

// settings are the names by which a limit is written, in the order in which it
// is shown.
var settings = []struct {
	name string
	what string
	set  func(l *Limit, text string) error
	text func(l *Limit) string // empty: not set
}{
	{"rps", "requests a second", number(func(l *Limit) *float64 { return &l.Requests }), func(l *Limit) string {
		if _, ok := perMinute(l.Requests); ok {
			return ""
		}
		return float(l.Requests)
	}},
	{"rpm", "requests a minute", func(l *Limit, text string) error {
		err := number(func(l *Limit) *float64 { return &l.Requests })(l, text)
		if l.Requests /= 60; err == nil && l.Requests < leastNumber {
			err = fmt.Errorf("%q: want a number from %g to %g", text, 60*leastNumber, mostNumber)
		}
		return err
	}, func(l *Limit) string {
		perMinute, ok := perMinute(l.Requests)
		if !ok {
			return ""
		}
		return float(perMinute)
	}},
	{"burst", "requests that may go at once after a pause", whole(func(l *Limit) *int { return &l.Burst }), func(l *Limit) string { return integer(l.Burst) }},
	{"tpm", "tokens a minute", number(func(l *Limit) *float64 { return &l.Tokens }), func(l *Limit) string { return float(l.Tokens) }},
	{"input_tpm", "input tokens a minute", number(func(l *Limit) *float64 { return &l.InputTokens }), func(l *Limit) string { return float(l.InputTokens) }},
	{"output_tpm", "output tokens a minute", number(func(l *Limit) *float64 { return &l.OutputTokens }), func(l *Limit) string { return float(l.OutputTokens) }},
	{"burst_tokens", "tokens that a pause may save", number(func(l *Limit) *float64 { return &l.BurstTokens }), func(l *Limit) string { return float(l.BurstTokens) }},
	{"cached_weight", "what a cached input token counts, 0 to 1", func(l *Limit, text string) error {
		w, err := strconv.ParseFloat(text, 64)
		if err != nil || !(w >= 0 && w <= 1) {
			return fmt.Errorf("%q: want a number from 0 to 1", text)
		}
		l.CachedWeight = &w
		return nil
	}, func(l *Limit) string {
		if l.CachedWeight == nil {
			return ""
		}
		return strconv.FormatFloat(*l.CachedWeight, 'f', -1, 64)
	}},
	{"concurrency", `calls in flight, "adaptive" to find how many, or "adaptive:N" to look up to N`, setConcurrency, func(l *Limit) string {
		switch {
		case l.Adaptive && l.InFlight > 0:
			return "adaptive:" + integer(l.InFlight)
		case l.Adaptive:
			return "adaptive"
		}
		return integer(l.InFlight)
	}},
	{"queue", "calls that may wait, or none", func(l *Limit, text string) error {
		if text == "none" {
			l.Queue = -1
			return nil
		}
		if err := whole(func(l *Limit) *int { return &l.Queue })(l, text); err != nil {
			return fmt.Errorf("%w, or none", err)
		}
		return nil
	}, func(l *Limit) string {
		if l.Queue < 0 {
			return "none"
		}
		return integer(l.Queue)
	}},
	{"wait", "how long a call may wait, from its arrival", func(l *Limit, text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return fmt.Errorf("%q: want a time such as 30s", text)
		}
		if d > longestWait {
			return fmt.Errorf("%q: want %s at most", text, spell(longestWait))
		}
		l.Wait = d
		return nil
	}, func(l *Limit) string {
		if l.Wait == 0 {
			return ""
		}
		return spell(l.Wait)
	}},
	{"priority", "high, normal or low", func(l *Limit, text string) error {
		i := slices.Index(priorities, text)
		if i < 1 {
			return fmt.Errorf("%q: want high, normal or low", text)
		}
		l.Priority = Priority(i)
		return nil
	}, func(l *Limit) string { return l.Priority.String() }},
	{"share", "of the queue beside other scenarios; 1 unless said", number(func(l *Limit) *float64 { return &l.Share }), func(l *Limit) string { return float(l.Share) }},
	{"retry", "times that a call is sent again which the endpoint refused", whole(func(l *Limit) *int { return &l.Retries }), func(l *Limit) string { return integer(l.Retries) }},
	{"hold", "on or off: whether to wait as the endpoint says", func(l *Limit, text string) error {
		if text != "on" && text != "off" {
			return fmt.Errorf("%q: want on or off", text)
		}
		l.NoHold = text == "off"
		return nil
	}, func(l *Limit) string {
		if l.NoHold {
			return "off"
		}
		return ""
	}},
}

// Set sets one part of the limit by its name, as Set("rps", "2"). An empty
// text, or "off", takes the part away again.
func (l *Limit) Set(name, text string) error {
	for _, s := range settings {
		if s.name != name {
			continue
		}
		if text == "" || text == "off" && name != "hold" {
			l.clear(name)
			return nil
		}
		next := *l
		if err := s.set(&next, text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*l = next
		return nil
	}
	return &UnknownName{name, LimitNames()}
}

// UnknownName says that a limit or a rule has no part of that name.
type UnknownName struct {
	Name  string
	Known []string
}

func (u *UnknownName) Error() string {
	return fmt.Sprintf("%q is no limit; want one of %s", u.Name, strings.Join(u.Known, ", "))
}

// clear takes a part away.
func (l *Limit) clear(name string) {
	var rest Limit
	for _, s := range settings {
		if text := s.text(l); text != "" && s.name != name && !(isRate(s.name) && isRate(name)) {
			_ = s.set(&rest, text) // what a limit says of itself can be read
		}
	}
	*l = rest
}

func isRate(name string) bool { return name == "rps" || name == "rpm" }

// LimitNames are the names that Set knows.
func LimitNames() []string {
	var names []string
	for _, s := range settings {
		names = append(names, s.name)
	}
	return names
}

// LimitHelp describes the limits, a line each.
func LimitHelp() string {
	var b strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&b, "%-14s %s\n", s.name, s.what)
	}
	return b.String()
}

// String is the limit as it is written: "rps=2 concurrency=8". It is empty for
// the zero Limit.
func (l Limit) String() string {
	var parts []string
	for _, s := range settings {
		if text := s.text(&l); text != "" {
			parts = append(parts, s.name+"="+text)
		}
	}
	return strings.Join(parts, " ")
}

// What is beyond these is a slip, and its times do not fit into a Duration.
const (
	leastNumber = 1e-6
	mostNumber  = 1e12
	mostWhole   = 1_000_000
	longestWait = 10 * farAway
)

func number(at func(*Limit) *float64) func(*Limit, string) error {
	return func(l *Limit, text string) error {
		n, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil || !(n > 0):
			return fmt.Errorf("%q: want a number above 0", text)
		case n < leastNumber || n > mostNumber:
			return fmt.Errorf("%q: want a number from %g to %g", text, leastNumber, mostNumber)
		}
		*at(l) = n
		return nil
	}
}

func whole(at func(*Limit) *int) func(*Limit, string) error {
	return func(l *Limit, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("%q: want a whole number above 0", text)
		}
		if n > mostWhole {
			return fmt.Errorf("%q: want %d at most", text, mostWhole)
		}
		*at(l) = n
		return nil
	}
}

func setConcurrency(l *Limit, text string) error {
	most, adaptive := strings.CutPrefix(text, "adaptive")
	if adaptive && most == "" {
		l.Adaptive, l.InFlight = true, 0
		return nil
	}
	if adaptive {
		if most, adaptive = strings.CutPrefix(most, ":"); !adaptive {
			return fmt.Errorf(`%q: want a whole number above 0, "adaptive" or "adaptive:N"`, text)
		}
		text = most
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf(`%q: want a whole number above 0, "adaptive" or "adaptive:N"`, text)
	}
	if n > mostWhole {
		return fmt.Errorf("%q: want %d at most", text, mostWhole)
	}
	l.Adaptive, l.InFlight = adaptive, n
	return nil
}

// perMinute is a rate by the minute; ok says that it reads better so, and is
// still exactly the same.
func perMinute(perSecond float64) (rate float64, ok bool) {
	rate = math.Round(perSecond*60*1e6) / 1e6
	return rate, perSecond*10 != math.Trunc(perSecond*10) && rate/60 == perSecond && rate <= mostNumber
}

func float(f float64) string {
	if f == 0 {
		return ""
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func integer(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// spell writes a time without what is zero in it: 2m, not 2m0s.
func spell(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
