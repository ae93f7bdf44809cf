package loadmodel

import (
	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
)

// Facts are what a rule may ask about a request.
type Facts struct {
	Model       string `expr:"model"`
	API         string `expr:"api"`
	Client      string `expr:"client"`
	Path        string `expr:"path"`
	Session     string `expr:"session"`
	InputTokens int    `expr:"input_tokens"`
	Turns       int    `expr:"turns"`
	Tools       int    `expr:"tools"`
	Stream      bool   `expr:"stream"`
}

// matcher is a compiled rule.
type matcher struct{ program *vm.Program }

// compile reads a rule such as `model startsWith "gpt" && input_tokens > 4000`.
func compile(rule string) (matcher, error) {
	program, err := expr.Compile(rule, expr.Env(Facts{}), expr.AsBool())
	return matcher{program}, err
}

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
