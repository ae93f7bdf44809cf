package sim

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Fault is a way in which a share of the requests goes wrong.
type Fault struct {
	Kind  string        // see faultKinds
	Share float64       // of all requests, 0 to 1
	Wait  time.Duration // of stall and slow; Retry-After of 429
}

// faultKind is a sort of fault: its name, what its wait is when not said, and
// what it does.
type faultKind struct {
	name string
	wait time.Duration
	what string
}

var faultKinds = []faultKind{
	{"429", time.Second, "refused, with Retry-After"},
	{"500", 0, "a server error"},
	{"529", 0, "overloaded"},
	{"error", 0, "an error event inside a 200"},
	{"cut", 0, "the connection breaks in the midst of an event"},
	{"end", 0, "the stream ends cleanly without its last events"},
	{"stall", 2 * time.Second, "a pause in the midst of the stream"},
	{"slow", 2 * time.Second, "the first token comes late"},
}

// kindOf finds a kind by its name; nil where there is none.
func kindOf(name string) *faultKind {
	for i := range faultKinds {
		if faultKinds[i].name == name {
			return &faultKinds[i]
		}
	}
	return nil
}

func kindNames() string {
	var names []string
	for _, k := range faultKinds {
		names = append(names, k.name)
	}
	return strings.Join(names, ", ")
}

// FaultHelp describes the faults, a line each.
func FaultHelp() string {
	var b strings.Builder
	for _, k := range faultKinds {
		fmt.Fprintf(&b, "%-6s %s\n", k.name, k.what)
	}
	return b.String()
}

// ParseFaults reads "429:1%,stall:0.5%:3s": kind, share, and for some a time.
// A share without its % is of 1. Empty text is no fault.
func ParseFaults(s string) ([]Fault, error) {
	var faults []Fault
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		f, err := parseFault(part)
		if err != nil {
			return nil, err
		}
		faults = append(faults, f)
	}
	if err := checkShares(faults); err != nil {
		return nil, fmt.Errorf("faults %q: %w", s, err)
	}
	return faults, nil
}

// checkShares refuses faults of more requests than there are.
func checkShares(faults []Fault) error {
	var sum float64
	for _, f := range faults {
		sum += f.Share
	}
	if sum > 1+1e-9 { // shares in percent are not exact
		return fmt.Errorf("their shares sum to %.4g%%; want at most 100%%", 100*sum)
	}
	return nil
}

func parseFault(part string) (Fault, error) {
	fields := strings.Split(part, ":")
	kind := kindOf(fields[0])
	if kind == nil {
		return Fault{}, fmt.Errorf("fault %q: unknown kind %q; want one of %s", part, fields[0], kindNames())
	}
	if len(fields) < 2 || len(fields) > 3 {
		return Fault{}, fmt.Errorf("fault %q: want KIND:SHARE or KIND:SHARE:TIME, as in stall:1%%:3s", part)
	}
	number, percent := strings.CutSuffix(fields[1], "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share >= 0 && share <= 1) {
		return Fault{}, fmt.Errorf("fault %q: share %q: want 0%% to 100%%", part, fields[1])
	}
	f := Fault{Kind: fields[0], Share: share, Wait: kind.wait}
	if len(fields) == 3 && kind.wait == 0 {
		return Fault{}, fmt.Errorf("fault %q: a fault of kind %s takes no time; leave %q out", part, kind.name, fields[2])
	}
	if len(fields) == 3 {
		if f.Wait, err = time.ParseDuration(fields[2]); err != nil || f.Wait < 0 {
			return Fault{}, fmt.Errorf("fault %q: time %q: want something like 3s", part, fields[2])
		}
	}
	return f, nil
}

// pick draws the fault of one request; nil for none.
func pick(faults []Fault, rng *rand.Rand) *Fault {
	u := rng.Float64()
	for i := range faults {
		if u < faults[i].Share {
			return &faults[i]
		}
		u -= faults[i].Share
	}
	return nil
}
