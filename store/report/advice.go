package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"weir/store/call"
)

// advise writes what happened and what to do next, each wrapped to the screen
// and indented by so many columns from its second line on; first is what
// stands before the first line, in as many.
func advise(w io.Writer, first, what, next string, indent int, s Style) {
	columns := max(s.columns()-indent-2, 30)
	pad := strings.Repeat(" ", indent)
	before := first
	for _, line := range wrap(plain(what), columns) {
		fmt.Fprintln(w, before+line)
		before = pad
	}
	before += "→ "
	for _, line := range wrap(plain(next), columns) {
		fmt.Fprintln(w, before+line)
		before = pad + "  "
	}
}

// wrap cuts text into lines of at most so many columns, between words where it
// can, else behind a sign that parts a name.
func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		for width.StringWidth(word) > columns {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			head := width.Truncate(word, columns, "")
			if at := strings.LastIndexAny(head, "_-./:,="); at > 0 { // where a name has its parts
				head = head[:at+1]
			}
			lines, word = append(lines, head), word[len(head):]
		}
		switch {
		case word == "":
		case line == "":
			line = word
		case width.StringWidth(line)+1+width.StringWidth(word) > columns:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// kind is a way to fail, whatever the group.
type kind struct {
	outcome  call.Outcome
	status   int
	refusal  string // of weir's own
	impaired bool
}

func (k kind) String() string {
	text := "✗ " + string(k.outcome)
	if k.status != 0 {
		text += " " + statusText(k.outcome, k.status)
	}
	if k.impaired {
		text += " " + impairedMark
	}
	return text
}

// explained is a kind of failure with the explanation of its most frequent
// one.
type explained struct {
	kind
	calls      int
	most       int // calls of the failure whose explanation it is
	what, next string
}

// mostExplained is how many kinds of failures are explained in text: the most
// frequent ones. JSON has them all.
const mostExplained = 5

// explained gives the kinds of failures, the most frequent first.
func (r *Report) explained() []explained {
	var kinds []explained
	for _, f := range r.Failures {
		k := kind{f.Outcome, f.Status, f.Refusal, f.Impaired}
		i := slices.IndexFunc(kinds, func(e explained) bool { return e.kind == k })
		if i < 0 {
			i, kinds = len(kinds), append(kinds, explained{kind: k})
		}
		e := &kinds[i]
		e.calls += f.Calls
		if f.Calls > e.most && f.What != "" {
			e.most, e.what, e.next = f.Calls, f.What, f.Next
		}
	}
	kinds = slices.DeleteFunc(kinds, func(e explained) bool { return e.what == "" })
	slices.SortStableFunc(kinds, func(a, b explained) int { return b.calls - a.calls })
	return kinds[:min(len(kinds), mostExplained)]
}

// explanations writes them below the table of failures.
func (r *Report) explanations(w io.Writer, s Style) {
	kinds := r.explained()
	indent := 0
	for _, e := range kinds {
		indent = max(indent, width.StringWidth(e.kind.String())+2)
	}
	for _, e := range kinds {
		advise(w, s.paint(red, e.kind.String())+strings.Repeat(" ", indent-width.StringWidth(e.kind.String())), e.what, e.next, indent, s)
	}
}
