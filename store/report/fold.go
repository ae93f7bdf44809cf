package report

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Paragraph writes text, wrapped to the screen. first, which takes indent
// columns, stands before it; its other lines are indented by as many. A Style
// without a width has it in one line. The text is made safe to show.
func Paragraph(w io.Writer, first, text string, indent int, s Style) {
	lines := []string{plain(text)}
	if s.Width > 0 {
		lines = wrap(lines[0], max(s.Width-indent, 20))
	}
	for _, line := range lines {
		fmt.Fprintln(w, first+line)
		first = strings.Repeat(" ", indent)
	}
}

// paragraph is Paragraph in a colour, whose further lines stand below the text
// that follows first.
func (s Style) paragraph(w io.Writer, colour, first, text string) {
	lines := []string{plain(text)}
	indent := width.StringWidth(first)
	if s.Width > 0 {
		lines = wrap(lines[0], max(s.Width-indent, 20))
	}
	for _, line := range lines {
		fmt.Fprintln(w, s.paint(colour, first+line))
		first = strings.Repeat(" ", indent)
	}
}

// parts writes parts side by side, those that have no room below the others; no
// line where there are none. They may have a colour of their own.
func (s Style) parts(w io.Writer, colour, gap string, parts []string) {
	line := ""
	for i, part := range parts {
		switch all := line + gap + part; {
		case i == 0:
			line = part
		case s.Width > 0 && width.StringWidth(coloured.ReplaceAllString(all, "")) > s.Width:
			fmt.Fprintln(w, s.paint(colour, line))
			line = "  " + part
		default:
			line = all
		}
	}
	if line != "" {
		fmt.Fprintln(w, s.paint(colour, line))
	}
}

// coloured finds what paint puts around text.
var coloured = regexp.MustCompile("\x1b\\[[0-9]*m")

// least is what a column of text keeps where there is too little room.
const least = 8

// FoldedTable is a Table of which what does not fit on the screen goes into
// further tables below it, the columns of the lowest Rank first. Columns of rank
// 0 stand in each. Text that is too wide by itself goes on in the next row. A
// Style without a width folds nothing.
func FoldedTable(w io.Writer, columns []Column, rows [][]string, s Style) {
	whole := pick(columns, rows, nil)
	if s.Width <= 0 || whole.width() <= s.Width {
		whole.text(w, nil)
		return
	}
	var ranks []int
	for _, c := range columns {
		if c.Rank > 0 {
			ranks = append(ranks, c.Rank)
		}
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	for begin := 0; begin < len(ranks); {
		end := begin + 1
		for end < len(ranks) && pick(columns, rows, ranks[begin:end+1]).fits(s.Width) {
			end++
		}
		if begin > 0 {
			fmt.Fprintln(w)
		}
		t := pick(columns, rows, ranks[begin:end])
		t.fit(s.Width)
		t.text(w, nil)
		begin = end
	}
}

// picked is a table of some columns, of which text may go on in further rows.
type picked struct {
	table
	always []int // the columns that stand in each table and hold text
	whole  [][]string
}

// pick makes a table of the columns of rank 0 and of some others; nil is all.
func pick(columns []Column, rows [][]string, ranks []int) *picked {
	t := &picked{}
	t.rows = make([][]string, len(rows))
	for i, c := range columns {
		if ranks != nil && c.Rank > 0 && !slices.Contains(ranks, c.Rank) {
			continue
		}
		if c.Left && c.Rank == 0 {
			t.always = append(t.always, len(t.columns))
		}
		t.columns = append(t.columns, column{over: c.Over, head: c.Head, left: c.Left})
		for n, row := range rows {
			t.rows[n] = append(t.rows[n], plain(row[i]))
		}
	}
	t.whole = t.rows
	return t
}

// fits says whether a table fits of which only what stands in each table is made
// narrower: other text has better room in a table of its own.
func (t *picked) fits(columns int) bool {
	t.fold(t.first(columns))
	return t.width() <= columns
}

// first are the widths of a table's text: what stands in each takes three tenths
// of the screen at most.
func (t *picked) first(columns int) map[int]int {
	most := map[int]int{}
	for _, i := range t.always {
		most[i] = columns * 3 / 10
	}
	return most
}

// fit makes text narrower, the widest column first, until the table fits.
func (t *picked) fit(columns int) {
	most := t.first(columns)
	t.fold(most)
	widths := t.widths()
	var text []int
	for i, c := range t.columns {
		if c.left {
			text = append(text, i)
		}
	}
	slices.SortStableFunc(text, func(a, b int) int { return widths[b] - widths[a] })
	for _, i := range text {
		if over := t.width() - columns; over > 0 {
			most[i] = widths[i] - over
			t.fold(most)
		}
	}
}

// fold lets cells go on in rows below where they are wider than their column
// may be.
func (t *picked) fold(most map[int]int) {
	t.rows = nil
	for _, row := range t.whole {
		begin := len(t.rows)
		t.rows = append(t.rows, slices.Clone(row))
		for i, columns := range most {
			for n, line := range wrap(row[i], max(columns, least)) {
				if begin+n == len(t.rows) {
					t.rows = append(t.rows, make([]string, len(row)))
				}
				t.rows[begin+n][i] = line
			}
		}
	}
}
