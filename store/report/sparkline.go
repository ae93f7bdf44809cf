package report

import (
	"fmt"
	"io"
	"time"

	"weir/store/call"
)

var levels = []rune("▁▂▃▄▅▆▇█")

// arrivals draws how many events with output came in each stretch of the
// stream, from its first event to its last. A gap in the line is a stretch in
// which none came.
func arrivals(w io.Writer, t call.Timeline, s Style) {
	var at []time.Duration
	for e := range t.Events() {
		if e.Output != 0 {
			at = append(at, e.After)
		}
	}
	if len(at) < 2 || at[len(at)-1] <= at[0] {
		return
	}
	from, span := at[0], at[len(at)-1]-at[0]
	columns := max(min(s.columns()-22, 60, len(at)), 2)
	counts := make([]int, columns)
	most := 0
	for _, a := range at {
		i := min(int(int64(columns)*int64(a-from)/int64(span)), columns-1)
		counts[i]++
		most = max(most, counts[i])
	}
	line := make([]rune, columns)
	for i, n := range counts {
		line[i] = ' '
		if n > 0 {
			line[i] = levels[(n*len(levels)-1)/most]
		}
	}
	each := span / time.Duration(columns)
	fmt.Fprintf(w, "%-9s %s  a column is %s, at most %s\n", "arrivals", string(line), duration(each, true), count(most, "event"))
}
