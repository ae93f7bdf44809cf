package report

import (
	"fmt"
	"slices"

	"weir/store/call"
)

// warn writes down what a reader must know before trusting the figures.
func (r *Report) warn() {
	say := func(format string, a ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, a...)) }
	t := &r.Total
	for _, run := range r.Runs {
		if run.Partial {
			say("run %s was broken off: its figures are of what was sent", run.ID)
		}
		if run.NotSent > 0 {
			// All that keeps a call back in a run that went to its end is a failure.
			what, why := "of the plan", "since a turn before them in their session failed"
			if run.Partial {
				what, why = "of begun sessions", "since the run was broken off, or a turn before them in their session failed"
			}
			say("run %s: %s %s not sent, %s", run.ID, count(run.NotSent, "call"), what, why)
		}
	}
	if r.LostSpans.Known && r.LostSpans.V > 0 {
		say("%s lost: the store is missing what they measured", count(int(r.LostSpans.V), "span"))
	}
	if r.Interrupted > 0 {
		say("%s never ended, because weir was killed: they are in none of the figures", count(r.Interrupted, "call"))
	}
	if again := r.resent(); again != "" {
		r.Warnings = append(r.Warnings, again)
	}
	if r.uncounted > 0 {
		say("%s in none of the endpoints' figures: they ended over %s after later ones, or there are more than %d endpoints", count(r.uncounted, "call"), seconds(N(heldBack.Seconds())), mostEndpoints)
	}
	if n := t.Tokens.Sources[string(call.UsageMissing)]; n > 0 {
		say("%d of %s gave no usage, or not to its end", n, count(t.Calls, "call"))
	}
	if n := t.Tokens.Sources[string(call.UsageEstimated)]; n > 0 {
		say("%s estimated token counts", partly(n, t.Calls, "has", "have"))
	}
	if n := t.Tokens.Sources[string(call.UsageSuspicious)]; n > 0 {
		say("%d of %s reported usage that contradicts itself or their stream", n, count(t.Calls, "call"))
	}
	if n := t.Stream.Coalesced; n > 0 {
		say("%s came coalesced: something upstream buffers the stream, and TTFT is not the model's", count(n, "stream"))
	}
	if t.Stream.Stalled > 0 {
		say("%s in %s, %s in all", count(t.Stream.Stalls, "stall"), count(t.Stream.Stalled, "call"), ms(t.Stream.StalledTime))
	}
	if v := t.Views; v.Differ > 0 {
		say("client and proxy TTFT differ by more than 2 ms + 2 %% in %d of %s, at most by %s", v.Differ, count(v.Both, "call"), ms(v.Worst))
	}
	if n := t.Stream.NotStreamed; n > 0 {
		say("%s not streamed and %s no TTFT", partly(n, t.Calls, "was", "were"), verb(n, "has", "have"))
	}
	if r.Impaired > 0 {
		say("%s made worse on purpose, as --impair says: they stand in rows marked %s, and in no other", were(r.Impaired, "call"), impairedMark)
	}
	if r.WarmUp > 0 {
		say("left out: %s of warm-up", count(r.WarmUp, "call"))
	}
	if r.NoGeneration > 0 {
		say("left out: %s without generation (models, count_tokens, embeddings, prewarms, connections)", count(r.NoGeneration, "call"))
	}
	r.Warnings = slices.Clip(r.Warnings)
}

// were is count with its verb.
func were(n int, noun string) string { return count(n, noun) + " " + verb(n, "was", "were") }

// partly writes a part of so many calls, with its verb: "1 of 3 calls has".
func partly(n, calls int, one, many string) string {
	return fmt.Sprintf("%d of %s %s", n, count(calls, "call"), verb(n, one, many))
}

// verb is the one that so many things want.
func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// count writes a number with its noun: "1 call", "2 calls".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
