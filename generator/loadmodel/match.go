package loadmodel

import (
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Facts are what a rule may ask about a request, by the names in the tags. A
// fact that is not known is empty or 0.
type Facts struct {
	Model       string `expr:"model"`
	API         string `expr:"api"`
	Client      string `expr:"client"`
	Path        string `expr:"path"`
	Session     string `expr:"session"`
	Purpose     string `expr:"purpose"`
	InputTokens int    `expr:"input_tokens"`
	Turns       int    `expr:"turns"`
	Tools       int    `expr:"tools"`
	Stream      bool   `expr:"stream"`
}

// factNames is for errors.
const factNames = "model, api, client, path, session, purpose, input_tokens, turns, tools, stream"

// matcher is a compiled rule. The zero matcher holds for nothing.
type matcher struct{ program *vm.Program }

// compile reads a rule such as `model startsWith "gpt" && input_tokens > 4000`.
// Its error is one line with the place inside the rule.
func compile(rule string) (matcher, error) {
	program, err := expr.Compile(rule, expr.Env(Facts{}), expr.AsBool())
	if err == nil {
		return matcher{program}, nil
	}
	text, place := err.Error(), ""
	if fault := (*file.Error)(nil); errors.As(err, &fault) {
		text, place = fault.Message, fmt.Sprintf(" at its %d:%d", fault.Line, fault.Column+1)
	}
	text, _, _ = strings.Cut(text, "\n")
	return matcher{}, fmt.Errorf("the rule is wrong%s: %s; want true or false out of %s", place, text, factNames)
}

// holds says whether the rule is true of a request. A rule that fails on it, as
// by reading behind the end of something, does not hold.
func (m matcher) holds(f Facts) bool {
	if m.program == nil {
		return false
	}
	out, err := expr.Run(m.program, f)
	yes, ok := out.(bool)
	return err == nil && ok && yes
}

// Match gives the scenario that a request belongs to: the first one whose rule
// holds. It is safe for concurrent use.
func (m *Model) Match(f Facts) (scenario string, ok bool) {
	for i := range m.Scenarios {
		if m.Scenarios[i].match.holds(f) {
			return m.Scenarios[i].ID, true
		}
	}
	return "", false
}

// HasRules says whether any scenario has a rule.
func (m *Model) HasRules() bool {
	for i := range m.Scenarios {
		if m.Scenarios[i].Match != "" {
			return true
		}
	}
	return false
}
