package proxy

import (
	"weir/store/call"
)

// The classes of calls that nothing and nobody names. They are those of the
// load model that weir ships, and divide calls by what makes one hard to serve:
// the prompt to read, the history to carry, the answer to write.
const (
	classShort  = "short_chat"
	classLong   = "long_context_rag"
	classAgent  = "multi_turn_agent"
	classOutput = "long_output"
)

const (
	longContext = 4000 // tokens of a prompt
	manyTurns   = 3    // of the user
	longOutput  = 2000 // tokens of an answer
)

// automatic is how a scenario was found that is a class.
const automatic = "automatic"

// classify gives the class of a call by its request. How long the answer gets
// is not known yet, and max_tokens does not tell: agents ask for all there is.
func classify(c *call.Call, inputTokens int64) string {
	r := &c.Request
	switch {
	case r.ToolCount > 0, r.TurnCount >= manyTurns:
		return classAgent
	case inputTokens >= longContext:
		return classLong
	}
	return classShort
}

// reclassify corrects the class of a call that has ended, by the tokens that
// were counted.
func reclassify(c *call.Call) {
	if c.ScenarioFrom != automatic || c.Scenario == classAgent {
		return
	}
	if in := c.Usage.Input; in.Known {
		c.Scenario = classify(c, in.N)
	}
	if out := c.Usage.Output; out.Known && out.N >= longOutput {
		c.Scenario = classOutput
	}
}
