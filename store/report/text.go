package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"weir/store"
)

// Style says how text is drawn. The zero Style has no colour and is 120
// columns wide.
type Style struct {
	Color bool // colour only repeats what a symbol says
	Width int  // columns of the screen; 0 is 120
}

func (s Style) columns() int {
	if s.Width <= 0 {
		return 120
	}
	return s.Width
}

// The colours: what is good, bad, to be noticed, and beside the point.
const (
	green  = "32"
	red    = "31"
	yellow = "33"
	faint  = "2"
)

func (s Style) paint(colour, text string) string {
	if !s.Color || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Text writes the report for people: runs with their verdict, the table, the
// generator's view, failures, and last what to know before trusting it.
func (r *Report) Text(w io.Writer, s Style) {
	for _, run := range r.Runs {
		run.text(w, s)
	}
	main := r.mainTable(0)
	for less := 1; less <= 5 && main.width() > s.columns(); less++ {
		main = r.mainTable(less)
	}
	totalRow := -1
	if len(r.allRows()) > len(r.Rows) {
		totalRow = len(main.rows) - 1
	}
	main.text(w, func(row, col int, cell string) string {
		switch {
		case row == -1 || strings.TrimSpace(cell) == absent:
			return s.paint(faint, cell)
		case row < len(r.Rows) && col == len(r.By)+1 && r.Rows[row].OK < r.Rows[row].Calls:
			return s.paint(red, cell)
		case row == totalRow && col == len(r.By)+1 && r.Total.OK < r.Total.Calls:
			return s.paint(red, cell)
		}
		return cell
	})
	if r.proxySeen() && r.clientSeen() {
		fmt.Fprintln(w)
		generator := r.clientTable(0)
		for less := 1; less <= 2 && generator.width() > s.columns(); less++ {
			generator = r.clientTable(less)
		}
		generator.text(w, func(row, _ int, cell string) string {
			if row == -1 || strings.TrimSpace(cell) == absent {
				return s.paint(faint, cell)
			}
			return cell
		})
	}
	if len(r.Failures) > 0 {
		fmt.Fprintln(w)
		r.failureTable(s.columns()).text(w, func(row, col int, cell string) string {
			switch {
			case row == -1:
				return s.paint(faint, cell)
			case col == len(r.By):
				return s.paint(red, cell)
			}
			return cell
		})
		fmt.Fprintln(w)
		r.explanations(w, s)
	}
	r.wants(w, s)
	r.onsets(w, s)
	r.footer(w, s)
}

// footer writes the warnings and the meaning of marks.
func (r *Report) footer(w io.Writer, s Style) {
	var notes []string
	if r.marked() {
		notes = append(notes, "* few calls: p50 wants 11, p90 64, p95 130, p99 662")
	}
	if r.LostSpans.Known {
		notes = append(notes, count(int(r.LostSpans.V), "span")+" lost")
	}
	if len(r.Warnings)+len(notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, warning := range r.Warnings {
		s.paragraph(w, yellow, "! ", warning)
	}
	s.parts(w, faint, "   ", notes)
}

// mostTargets is how many endpoints of a run text names. JSON has them all.
const mostTargets = 8

// text writes a run's two lines, and its endpoints where there are several.
func (run *Run) text(w io.Writer, s Style) {
	head := []string{"run " + run.ID}
	way, targets := plain(run.Model), store.Targets(run.Target)
	switch n := len(targets); {
	case n == 1:
		way = strings.TrimSpace(way + " → " + plain(targets[0])) // a load model need not have a name
	case n > 1:
		way = strings.TrimSpace(way + " → " + count(n, "endpoint"))
	}
	for _, part := range []string{way, seconds(run.Duration)} {
		if part != "" && part != absent {
			head = append(head, part)
		}
	}
	if run.Seed != "" {
		head = append(head, "seed "+run.Seed)
	}
	s.parts(w, "", "  ", append(head, run.verdict(s)))
	if n := len(targets); n > 1 {
		shown := strings.Join(targets[:min(n, mostTargets)], ", ")
		if more := n - mostTargets; more > 0 {
			shown += fmt.Sprintf(" and %d more: weir report --json", more)
		}
		s.paragraph(w, "", "  ", "endpoints: "+plain(shown))
	}
	for _, reason := range run.Reasons {
		s.paragraph(w, red, "  because ", reason)
	}
	if run.Planned.Known || run.LagP99.Known {
		few := ""
		if run.lagFew {
			few = "*"
		}
		s.parts(w, faint, "   ", []string{
			fmt.Sprintf("planned %s, sent %s", perSecond(run.Planned), perSecond(run.Achieved)),
			fmt.Sprintf("lag p50 %s p99 %s max %s", ms(run.LagP50), ms(run.LagP99)+few, ms(run.LagMax)),
		})
	}
	for _, note := range run.Notes {
		s.paragraph(w, faint, "note: ", note)
	}
	fmt.Fprintln(w)
}

// verdict writes a run's verdict with its symbol.
func (run *Run) verdict(s Style) string {
	switch {
	case run.Verdict == "":
		return s.paint(yellow, "… not ended")
	case run.Partial:
		return s.paint(yellow, "! broken off, "+run.Verdict)
	case run.Verdict == "valid":
		return s.paint(green, "✓ valid")
	}
	return s.paint(red, "✗ "+strings.ToUpper(run.Verdict))
}

// proxySeen and clientSeen say whether any successful call was measured by
// that side.
func (r *Report) proxySeen() bool {
	return !r.clientSeen() || slices.ContainsFunc(r.Rows, func(row Row) bool { return row.TTFTFelt.N > 0 })
}

func (r *Report) clientSeen() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.TTFTService.N > 0 })
}

// What the row of all others together is called, and where some of them are
// impaired, which it leaves out.
const (
	allOfThem = "all"
	allClean  = "all clean"
)

// allRows are the rows, and all of them together where there are several.
func (r *Report) allRows() []Row {
	name, clean := allOfThem, 0
	for _, row := range r.Rows {
		if row.Impaired {
			name = allClean
		} else {
			clean++
		}
	}
	if clean < 2 {
		return r.Rows
	}
	total := r.Total
	total.Group = append([]string{name}, make([]string, len(r.By)-1)...)
	return append(r.Rows[:len(r.Rows):len(r.Rows)], total)
}

// groupColumns begin every table.
func (r *Report) groupColumns() []column {
	var columns []column
	for _, name := range r.By {
		columns = append(columns, column{head: name, left: true})
	}
	return columns
}

func (r *Report) groupCells(row Row) []string {
	cells := make([]string, len(row.Group))
	for i, v := range row.Group {
		cells[i] = named(v)
		if (row.Group[0] == allOfThem || row.Group[0] == allClean) && i > 0 && v == "" {
			cells[i] = ""
		}
	}
	return cells
}

func ttftColumns(over string) []column {
	return []column{{over: over, head: "n"}, {over: over, head: "p50"}, {over: over, head: "p95"}, {over: over, head: "p99"}}
}

func ttftCells(p Percentiles) []string {
	return []string{strconv.Itoa(p.N), mark(p, "p50", p.P50), mark(p, "p95", p.P95), mark(p, "p99", p.P99)}
}

// mainTable has a row for each group: what the proxy saw, or the generator
// where there was no proxy. less leaves figures out for narrow screens: 1 the
// second TTFT's tail, 2 also the cache, 3 also the queue, 4 also the
// tokens, 5 also the second TTFT. The count of calls stands beside their percentiles on
// every screen. JSON and CSV have them all.
func (r *Report) mainTable(less int) *table {
	first, second := "ttft felt", "ttft upstream"
	proxy := r.proxySeen()
	if !proxy {
		first, second = "ttft response", "ttft service"
	}
	end := 4 // of the columns of a TTFT: n, p50, p95, p99
	if less > 0 {
		end = 2
	}
	if less > 4 {
		end = 1
	}
	queued := proxy && less < 3
	cached := r.Total.Tokens.CacheReadShare.Known && less < 2
	t := &table{columns: r.groupColumns()}
	t.columns = append(t.columns, column{head: "calls"}, column{head: "ok"})
	t.columns = append(t.columns, ttftColumns(first)...)
	t.columns = append(t.columns, ttftColumns(second)[1:end]...)
	t.columns = append(t.columns, column{head: "tpot"})
	if less < 4 {
		t.columns = append(t.columns, column{head: "tokens in→out"})
	}
	if cached {
		t.columns = append(t.columns, column{head: "cached"})
	}
	share := queued && r.queueCounts()
	if queued {
		t.columns = append(t.columns, column{over: "queued", head: "p95"})
	}
	if share {
		t.columns = append(t.columns, column{over: "queued", head: "of ttft"})
	}
	attempts := queued && r.attemptsCount()
	if attempts {
		t.columns = append(t.columns, column{over: "attempts", head: "of ttft"})
	}
	for _, row := range r.allRows() {
		cells := append(r.groupCells(row), strconv.Itoa(row.Calls), percent(row.Share))
		a, b := row.TTFTFelt, row.TTFTUpstream
		if !proxy {
			a, b = row.TTFTResponse, row.TTFTService
		}
		cells = append(cells, ttftCells(a)...)
		cells = append(cells, ttftCells(b)[1:end]...)
		cells = append(cells, mark(row.TPOT, "p50", row.TPOT.P50))
		if less < 4 {
			cells = append(cells, inOut(row.Tokens))
		}
		if cached {
			cells = append(cells, percent(row.Tokens.CacheReadShare))
		}
		if queued {
			cells = append(cells, mark(row.Queued, "p95", row.Queued.P95))
		}
		if share {
			cells = append(cells, percent(row.Shaping.QueueShare))
		}
		if attempts {
			cells = append(cells, percent(row.Shaping.AttemptsShare))
		}
		t.add(cells...)
	}
	return t
}

// inOut writes the mean tokens of a call.
func inOut(t Tokens) string {
	if !t.InputMean.Known && !t.OutputMean.Known {
		return absent
	}
	return whole(t.InputMean) + "→" + whole(t.OutputMean)
}

// clientTable is the generator's view of the calls that the main table has
// from the proxy. less leaves figures out for narrow screens: 1 the second
// TTFT's tail, 2 all of it.
func (r *Report) clientTable(less int) *table {
	end := 4
	if less > 0 {
		end = 2
	}
	if less > 1 {
		end = 1
	}
	t := &table{columns: r.groupColumns()}
	t.columns = append(t.columns, ttftColumns("generator: from due")...)
	t.columns = append(t.columns, ttftColumns("from send")[1:end]...)
	t.columns = append(t.columns, column{over: "views", head: "differ"}, column{over: "views", head: "most"})
	for _, row := range r.allRows() {
		cells := append(r.groupCells(row), ttftCells(row.TTFTResponse)...)
		cells = append(cells, ttftCells(row.TTFTService)[1:end]...)
		t.add(append(cells, strconv.Itoa(row.Views.Differ), ms(row.Views.Worst))...)
	}
	return t
}

func (r *Report) failureTable(columns int) *table {
	t := &table{columns: append(r.groupColumns(), column{head: "failed", left: true}, column{head: "status"},
		column{head: "calls"}, column{head: "said", left: true})}
	used := 0
	for _, f := range r.Failures {
		cells := r.groupCells(Row{Group: f.Group})
		cells = append(cells, "✗ "+string(f.Outcome), statusText(f.Outcome, f.Status), strconv.Itoa(f.Calls), absent)
		said := f.Messages
		if lane := f.laneText(); lane != "" {
			said = []string{lane} // its messages differ only by how long to wait
		}
		if len(said) > 0 {
			cells[len(cells)-1] = plain(said[0])
		}
		t.add(cells...)
		for _, m := range said[min(1, len(said)):] {
			more := make([]string, len(cells))
			more[len(more)-1] = plain(m)
			t.add(more...)
		}
	}
	last := len(t.columns) - 1
	for c := range last {
		w := width.StringWidth(t.columns[c].head)
		for _, row := range t.rows {
			w = max(w, width.StringWidth(row[c]))
		}
		used += w + 2
	}
	for _, row := range t.rows {
		row[last] = clip(row[last], max(columns-used, 24))
	}
	return t
}

// marked says whether any figure of the tables carries the star.
func (r *Report) marked() bool {
	if slices.ContainsFunc(r.Runs, func(run Run) bool { return run.lagFew }) || slices.ContainsFunc(r.Wants, func(w Want) bool { return w.Unreliable }) {
		return true
	}
	for _, row := range r.allRows() {
		for _, p := range []Percentiles{row.TTFTFelt, row.TTFTUpstream, row.TTFTResponse, row.TTFTService, row.TPOT} {
			if p.N > 0 && len(p.Unreliable) > 0 {
				return true
			}
		}
	}
	return false
}
