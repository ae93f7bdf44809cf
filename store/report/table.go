package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// table is cells that are aligned by what they take on a screen, where a
// Chinese character is two columns wide.
type table struct {
	columns []column
	rows    [][]string
	hung    bool // hangMarks has been at work
}

// column is one column; over is a title above neighbouring columns that share
// it.
type column struct {
	over string
	head string
	left bool // text; figures stand at the right
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// width counts ambiguous characters (→ … –) as one column, whatever the
// locale: terminals draw them so, and the same report must look the same.
var width = &runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}

// plain makes text from elsewhere safe to show: one line, no control
// characters that could steer a terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf):
			return -1
		}
		return r
	}, s)
}

// clip shortens text to so many columns.
func clip(s string, columns int) string {
	if width.StringWidth(s) <= columns {
		return s
	}
	return width.Truncate(s, columns, "…")
}

// text writes the table with two spaces between columns and nothing at line
// ends. style, when set, colours a finished cell of a row; row -1 is the head.
func (t *table) text(w io.Writer, style func(row, col int, cell string) string) {
	t.hangMarks()
	widths := t.widths()
	if over := t.overLine(widths); over != "" {
		fmt.Fprintln(w, paint(style, -1, 0, over))
	}
	heads := make([]string, len(t.columns))
	for i, c := range t.columns {
		heads[i] = c.head
	}
	t.line(w, heads, widths, -1, style)
	for i, row := range t.rows {
		t.line(w, row, widths, i, style)
	}
}

// widths are what the columns take. A title that is wider than its columns
// widens the first of them where another title follows.
func (t *table) widths() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = width.StringWidth(c.head)
	}
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], width.StringWidth(cell))
		}
	}
	for i := 0; i < len(t.columns); {
		span, w := t.span(i, widths)
		if next := i + span; next < len(t.columns) && t.columns[next].over != "" {
			widths[i] += max(width.StringWidth(t.columns[i].over)-w, 0)
		}
		i += span
	}
	return widths
}

// span is how many columns share the title of one, and what they take.
func (t *table) span(at int, widths []int) (span, w int) {
	over := t.columns[at].over
	for span, w = 1, widths[at]; over != "" && at+span < len(t.columns) && t.columns[at+span].over == over; span++ {
		w += 2 + widths[at+span]
	}
	return span, w
}

// width is what the whole table takes.
func (t *table) width() int {
	t.hangMarks()
	sum, widths := 0, t.widths()
	for _, w := range widths {
		sum += w + 2
	}
	return max(sum-2, width.StringWidth(t.overLine(widths)))
}

// hangMarks keeps digits below each other where some figures of a column have
// a star behind them: the others get a space.
func (t *table) hangMarks() {
	if t.hung {
		return
	}
	t.hung = true
	for i := range t.columns {
		marked := !t.columns[i].left && slices.ContainsFunc(t.rows, func(row []string) bool { return strings.HasSuffix(row[i], "*") })
		if !marked {
			continue
		}
		t.columns[i].head += " "
		for _, row := range t.rows {
			if row[i] != "" && !strings.HasSuffix(row[i], "*") {
				row[i] += " "
			}
		}
	}
}

func (t *table) line(w io.Writer, cells []string, widths []int, row int, style func(int, int, string) string) {
	var b strings.Builder
	pending := 0 // spaces owed, written only when something follows
	for i, cell := range cells {
		gap := widths[i] - width.StringWidth(cell)
		if !t.columns[i].left {
			pending += gap
		}
		if cell != "" {
			b.WriteString(strings.Repeat(" ", pending))
			b.WriteString(paint(style, row, i, cell))
			pending = 0
		}
		if t.columns[i].left {
			pending += gap
		}
		pending += 2
	}
	fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
}

func paint(style func(int, int, string) string, row, col int, cell string) string {
	if style == nil {
		return cell
	}
	return style(row, col, cell)
}

// overLine is the line above the heads, each title over the middle of its
// columns; empty when there are none.
func (t *table) overLine(widths []int) string {
	var b strings.Builder
	at := 0
	for i := 0; i < len(t.columns); {
		over := t.columns[i].over
		span, w := t.span(i, widths)
		if over != "" {
			ow := width.StringWidth(over)
			start := at + max(w-ow, 0)/2
			if have := width.StringWidth(b.String()); start > have {
				b.WriteString(strings.Repeat(" ", start-have))
			}
			b.WriteString(over)
		}
		at += w + 2
		i += span
	}
	return b.String()
}

// markdown writes the table as GitHub reads it.
func (t *table) markdown(w io.Writer) {
	esc := strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;")
	line := func(cells []string) {
		fmt.Fprint(w, "|")
		for _, c := range cells {
			fmt.Fprintf(w, " %s |", esc.Replace(c))
		}
		fmt.Fprintln(w)
	}
	heads := make([]string, len(t.columns))
	for i, c := range t.columns {
		heads[i] = strings.TrimSpace(c.over + " " + c.head)
	}
	line(heads)
	fmt.Fprint(w, "|")
	for _, c := range t.columns {
		if c.left {
			fmt.Fprint(w, " --- |")
		} else {
			fmt.Fprint(w, " ---: |")
		}
	}
	fmt.Fprintln(w)
	for _, row := range t.rows {
		line(row)
	}
}

// Column is a column of a Table.
type Column struct {
	Over string // a title that neighbouring columns share; empty: none
	Head string
	Left bool // text; figures stand at the right
	Rank int  // where a FoldedTable puts it: those of the lowest rank come first, those of rank 0 always
}

// Table writes rows in columns that are aligned by what they take on a screen.
// What stands in the cells is made safe to show.
func Table(w io.Writer, columns []Column, rows [][]string) {
	t := &table{}
	for _, c := range columns {
		t.columns = append(t.columns, column{over: c.Over, head: c.Head, left: c.Left})
	}
	for _, row := range rows {
		t.add(safe(row)...)
	}
	t.text(w, nil)
}

// TabLine writes cells as one tab-separated line, for a pipe.
func TabLine(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(safe(cells), "\t")) }

// safe makes cells plain.
func safe(cells []string) []string {
	all := make([]string, len(cells))
	for i, cell := range cells {
		all[i] = plain(cell)
	}
	return all
}
