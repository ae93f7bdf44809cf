package report

import (
	"fmt"
	"io"
	"strings"
)

// Mark says how something that was looked at is.
type Mark uint8

// The marks.
const (
	Good    Mark = iota
	Odd          // it works, but not fully
	Bad          // it does not work
	Skipped      // not looked at, or not there, and nothing lacks
)

var marks = [...]struct{ symbol, colour string }{{"✓", green}, {"!", yellow}, {"✗", red}, {"–", faint}}

// Symbol is a mark as it is drawn.
func (s Style) Symbol(m Mark) string { return s.paint(marks[m].colour, marks[m].symbol) }

// Finding is one thing that was looked at.
type Finding struct {
	Mark  Mark
	Cells []string // what it is, and what was found in few words
	Notes []string // more of what was found, a line each
	What  string   // what is wrong, in a sentence; empty when nothing is
	Next  string   // what to do about it
}

// Findings writes findings below each other, what is wrong and what to do
// beneath each, or once beneath several of which the same is to be said. heads name the cells; nil writes no line of heads. The last
// cell is cut at the end of the screen.
func Findings(w io.Writer, heads []string, findings []Finding, s Style) {
	t := &table{}
	for _, f := range findings {
		t.add(f.Cells...)
		for len(t.columns) < len(f.Cells) {
			t.columns = append(t.columns, column{left: true})
		}
	}
	for i, head := range heads {
		for len(t.columns) <= i {
			t.columns = append(t.columns, column{})
		}
		t.columns[i] = column{head: head, left: i == 0 || i == len(heads)-1}
	}
	last := len(t.columns) - 1
	used := 2
	for i, w := range t.widths() {
		if i < last {
			used += w + 2
		}
	}
	for _, row := range t.rows {
		for i, cell := range row {
			row[i] = plain(cell)
			if i == last {
				row[i] = clip(row[i], max(s.columns()-used, 24))
			}
		}
	}
	widths := t.widths()
	faintly := func(_, _ int, cell string) string { return s.paint(faint, cell) }
	if heads != nil {
		fmt.Fprint(w, "  ")
		t.line(w, heads, widths, -1, faintly)
	}
	for i, f := range findings {
		fmt.Fprint(w, s.Symbol(f.Mark)+" ")
		style := faintly
		if f.Mark != Skipped {
			style = nil
		}
		t.line(w, t.rows[i], widths, i, style)
		for _, note := range f.Notes {
			for _, line := range wrap(plain(note), max(s.columns()-4, 30)) {
				fmt.Fprintln(w, "    "+s.paint(faint, line))
			}
		}
		same := i+1 < len(findings) && findings[i+1].What == f.What && findings[i+1].Next == f.Next && findings[i+1].Mark == f.Mark
		if (f.What != "" || f.Next != "") && !same {
			advise(w, strings.Repeat(" ", 4), f.What, f.Next, 4, s)
		}
	}
}
