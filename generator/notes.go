package generator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Prompts that are not farther from their planned tokens are as planned.
const negligible = 0.02

// A plan of which so little was not sent in its time was kept; so few requests are
// those that a run's end always cuts off. Of conversations it cuts off more: each
// answer, however fast, moves the turns behind it towards the end and over it.
const (
	negligibleMiss = 0.05
	movedMiss      = 0.25
	endOfRun       = 10
)

// Notes say what a reader must know of a run to read its figures rightly, a
// sentence each.
func (r *Result) Notes() []string {
	var list []string
	say := func(format string, a ...any) { list = append(list, fmt.Sprintf(format, a...)) }
	if r.Stopped != "" {
		say("the run ended itself: %s", r.Stopped)
	}
	if r.Users > 0 {
		say("closed loop of %s: nothing was due before the answer to what came before it, so a slow endpoint was sent less, "+
			"and times from due hold only this client's lateness; they do not compare with an open loop's", count(r.Users, "user", "users"))
	}
	why, kept := "", negligibleMiss
	if r.chained {
		kept = movedMiss
	}
	if missed := r.PlannedInTime - r.SentInTime; r.Users == 0 && missed > endOfRun && float64(missed) > kept*float64(r.PlannedInTime) {
		if r.chained {
			why = ": a later turn waits for the answer before it, and is not sent after one that failed"
		}
		say("the plan's rate was missed: by its own times %.3g/s were to be sent, and %.3g/s were%s", r.PlannedRate, r.SentRate, why)
	}
	if len(r.Unsent) > 0 {
		var parts []string
		for _, why := range slices.Sorted(maps.Keys(r.Unsent)) {
			if why == whyStopped {
				parts = append(parts, fmt.Sprintf("%d since the run stopped", r.Unsent[why]))
			} else {
				parts = append(parts, fmt.Sprintf("%d since a turn before them was %s", r.Unsent[why], why))
			}
		}
		say("not sent: %s", strings.Join(parts, ", "))
	}
	if c := r.Connect; c.N > 0 {
		say("%s set up, p50 %s, p99 %s, at most %s: it is in no TTFT from the end of the send", count(c.N, "connection was", "connections were"), round(c.P50), round(c.P99), round(c.Max))
	}
	for _, l := range r.Learned {
		if l.Off <= negligible {
			continue
		}
		list = append(list, l.note(r.RunID))
	}
	return list
}
