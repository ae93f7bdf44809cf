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

// refused explains a call that weir's shaper did not let go.
func (c *Call) refused() advice {
	if c.Lane == "" {
		next := "Raise the limit of its lane, or send less at once."
		if c.RetryAfter > 0 {
			next = "Try again in " + spell(c.RetryAfter) + ", or raise the limit of its lane."
		}
		return advice{"weir itself refused the request, because its own limit for it was reached.", next}
	}
	wait := ""
	if c.ExpectedWait > 0 {
		wait = "; it would have waited " + spell(c.ExpectedWait)
	}
	if c.LaneLimit == "hold" {
		return advice{"weir itself refused the request, because the endpoint asks to wait" + inBrackets(c.HoldReason) + " and the lane " + c.Lane + " does" + wait + ".",
			"Wait, or send without waiting: weir limit " + c.ruleOf() + " hold=off."}
	}
	words, known := limitWords[c.LaneLimit]
	if !known {
		words.what, words.setting = "its limit", "queue=…"
	}
	return advice{"weir itself refused the request: the lane " + c.Lane + " is at " + words.what + wait + ".",
		"Raise it with weir limit " + c.ruleOf() + " " + words.setting + ", or wait and send less at once."}
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
