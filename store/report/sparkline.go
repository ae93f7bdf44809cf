package report

import (
	"fmt"
	"io"
	"math"
	"time"

	"weir/store/call"
)

var levels = []rune("▁▂▃▄▅▆▇█")

// Sparkline draws a column for each value, which is 0 or more, and gives the
// largest. A gap in the line is a 0.
func Sparkline(values []float64) (line string, most float64) {
	for _, v := range values {
		most = max(most, v)
	}
	columns := make([]rune, len(values))
	for i, v := range values {
		columns[i] = ' '
		if v > 0 {
			columns[i] = levels[max(int(math.Ceil(v*float64(len(levels))/most))-1, 0)]
		}
	}
	return string(columns), most
}

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
	counts := make([]float64, columns)
	for _, a := range at {
		counts[min(int(int64(columns)*int64(a-from)/int64(span)), columns-1)]++
	}
	line, most := Sparkline(counts)
	each := span / time.Duration(columns)
	fmt.Fprintf(w, "%-9s %s  a column is %s, at most %s\n", "arrivals", line, duration(each, true), count(int(most), "event"))
}
