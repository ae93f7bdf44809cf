package call

import (
	"slices"
	"strings"
)

// RefusedForLoad says whether the endpoint refused the call because too much
// was asked of it: a 429, 503 or 529 that more credit would not mend. weir's
// own refusal is none.
func (c *Call) RefusedForLoad() bool {
	if c.Outcome != RateLimited && c.Outcome != Overloaded {
		return false
	}
	_, account := ofAccount(c, c.said())
	return !account
}

// limitWords say what bound a call, by the word in LaneLimit: what it is called
// in a sentence, and by which setting of weir limit it is changed.
var limitWords = map[string]struct{ what, setting string }{
	"requests":      {"its rate of requests", "rps=…"},
	"tokens":        {"its budget of tokens", "tpm=…"},
	"input tokens":  {"its budget of input tokens", "input_tpm=…"},
	"output tokens": {"its budget of output tokens", "output_tpm=…"},
	"in flight":     {"its number of calls in flight", "concurrency=…"},
	"hold":          {"the endpoint's word", "hold=off"},
}

// Stopping is what weir says to a call that waited in a lane when it was stopped.
const Stopping = "it is stopping, and the call was not sent"

// WasStopped says whether weir refused the call because it was stopped, whatever
// lane it stood in.
func (c *Call) WasStopped() bool {
	return c.Outcome == Refused && strings.Contains(c.ErrorMessage, Stopping)
}

// refused explains a call that weir did not let go.
func (c *Call) refused() advice {
	switch {
	case c.WasStopped():
		return advice{"weir was stopped while the call waited, and did not send it.", "Send it again when weir runs."}
	case c.Lane == "" && c.ErrorMessage != "" && !strings.HasPrefix(c.ErrorMessage, "refused: "): // the message says what to do
		return advice{"weir itself refused the request: " + strings.TrimSuffix(c.ErrorMessage, ".") + ".", ""}
	case c.Lane == "":
		next := "Raise the limit of its lane, or send less at once."
		if c.RetryAfter > 0 {
			next = "Try again in " + spell(c.RetryAfter) + ", or raise the limit of its lane."
		}
		return advice{"weir itself refused the request, because its own limit for it was reached.", next}
	}
	lane, of := "the lane "+c.Lane, "weir limit "+c.ruleOf()+" "
	words, known := limitWords[c.LaneLimit]
	if !known {
		words.what, words.setting = "its limit", "rps=…"
	}
	what, next := lane+" is at "+words.what, "Raise it with "+of+words.setting
	if c.LaneLimit == "hold" {
		what, next = "the endpoint asks to wait"+inBrackets(c.HoldReason)+" and "+lane+" does", "Wait, or send without waiting: "+of+"hold=off"
	}
	switch wait := spell(c.ExpectedWait); {
	case c.LaneRefusal == "full queue":
		what, next = "the queue of "+lane+" was full, while "+strings.Replace(what, lane, "it", 1), "Let more calls wait with "+of+"queue=…, or send less at once"
	case c.LaneRefusal == "deadline":
		what, next = "it had waited as long as it may, while "+what, next+", or let calls wait longer with wait=…"
	case c.ExpectedWait > 0:
		what, next = what+"; it would have waited "+wait+", which is longer than it may", next+", or let calls wait longer with wait=…"
	case c.LaneLimit != "hold":
		next += ", or wait and send less at once"
	}
	return advice{"weir itself refused the request: " + what + ".", next + "."}
}

// held explains a call that went well, but of whose time the endpoint's word
// took a share that is worth a look: a tenth.
func (c *Call) held() (advice, bool) {
	felt, ok := c.TTFTFelt()
	if !ok {
		felt, ok = c.Duration()
	}
	if !ok || c.Held <= 0 || c.Held < felt/10 {
		return advice{}, false
	}
	return advice{"The call waited " + spell(c.Held) + " because the endpoint had asked to wait" + inBrackets(c.HoldReason) + "; that time is not the model's.",
		"Stay below the endpoint's limit, so that it need not ask: weir limit " + c.ruleOf() + " rps=…, or tpm=…."}, true
}

// ruleOf writes the lane as weir limit takes it. A lane that only the endpoint
// limits has no rule yet: its upstream gets one.
func (c *Call) ruleOf() string {
	words := strings.Fields(c.Lane)
	if c.Lane == "all" || len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(w, "=") }) {
		return c.Lane
	}
	if c.Upstream != "" {
		return "upstream=" + c.Upstream
	}
	return "all"
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
