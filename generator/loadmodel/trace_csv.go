package loadmodel

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"
)

// table is a format with a header that names its columns.
type table struct {
	name     string
	required []string // columns
	row      func(fields) (record, error)
}

var (
	// azure is the Azure LLM inference traces of 2023 to 2025: a wall clock
	// without a zone.
	azure = table{"azure", []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, azureRow}
	// burst is BurstGPT: seconds, and no response tokens for a failure. Elapsed
	// time, where there is one, is end to end and never a TTFT: it is not read.
	burst = table{"burstgpt", []string{"Timestamp", "Model", "Request tokens", "Response tokens"}, burstRow}
)

// columnsOf reads a header: where each column stands, by its name in small
// letters.
func columnsOf(header []byte) map[string]int {
	columns := map[string]int{}
	for i, name := range split(nil, header) {
		columns[strings.ToLower(name)] = i
	}
	return columns
}

// missing is the first required column that is not there; empty when all are.
func (f table) missing(columns map[string]int) string {
	for _, name := range f.required {
		if _, ok := columns[strings.ToLower(name)]; !ok {
			return name
		}
	}
	return ""
}

func (f table) fits(columns map[string]int) bool { return f.missing(columns) == "" }

func (f table) records(t *Trace) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		var row fields
		histories := t.histories()
		for l, err := range t.lines() {
			if err == nil && row.columns == nil {
				row.columns = columnsOf(l.text)
				if name := f.missing(row.columns); name != "" {
					err = t.fault(l.number, fmt.Sprintf("column %q is missing from the header; want the columns of %s: %s", name, f.name, strings.Join(f.required, ", ")))
				} else {
					continue
				}
			}
			if err != nil {
				yield(record{}, err)
				return
			}
			row.values = split(row.values[:0], l.text)
			r, err := f.row(row)
			if err != nil {
				yield(record{}, t.fault(l.number, err.Error()+"; mend the row or take it out"))
				return
			}
			histories.place(&r)
			if !yield(r, nil) {
				return
			}
		}
	}
}

// split cuts a line at its commas. Quotes are rare, and then read by the rules.
func split(values []string, text []byte) []string {
	if bytes.IndexByte(text, '"') >= 0 {
		r := csv.NewReader(bytes.NewReader(text))
		r.LazyQuotes = true
		quoted, _ := r.Read() // a row that is not whole lacks columns
		return append(values, quoted...)
	}
	for field := range bytes.SplitSeq(text, []byte{','}) {
		values = append(values, string(bytes.TrimSpace(field)))
	}
	return values
}

// fields are the values of one row.
type fields struct {
	columns map[string]int
	values  []string
}

// get reads a value by its column's name; empty when there is none.
func (f fields) get(name string) string {
	if i, ok := f.columns[strings.ToLower(name)]; ok && i < len(f.values) {
		return strings.TrimSpace(f.values[i])
	}
	return ""
}

// tokens reads a count. Some tools write 12.0 for 12.
func (f fields) tokens(name string) (int, error) {
	s := f.get(name)
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0 && n <= math.MaxInt32) || n != math.Trunc(n) {
		return 0, fmt.Errorf("column %q: %s is not a number of tokens", name, shown(s))
	}
	return int(n), nil
}

// shown quotes what stands in a file, cut to what a line can hold.
func shown(s string) string {
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return strconv.Quote(s)
}

func azureRow(f fields) (r record, err error) {
	stamp, ok := parseStamp(f.get("TIMESTAMP"))
	if !ok {
		return r, fmt.Errorf("column %q: %s is not a time as 2023-11-16 18:15:46.6805900", "TIMESTAMP", shown(f.get("TIMESTAMP")))
	}
	r.at = time.Duration(stamp.UnixNano())
	if r.Input, err = f.tokens("ContextTokens"); err == nil {
		r.Output, err = f.tokens("GeneratedTokens")
	}
	images, _ := strconv.ParseFloat(f.get("NumImages"), 64) // of 2025; what is no number is none
	r.images = images > 0
	return r, err
}

// parseStamp reads a wall clock's time, which is UTC where it names no zone.
// Those whose nanoseconds do not fit into 64 bits are none.
func parseStamp(s string) (time.Time, bool) {
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil { // a fraction is read behind any seconds
			return t, t.Year() >= 1970 && t.Year() < 2200
		}
	}
	return time.Time{}, false
}

func burstRow(f fields) (r record, err error) {
	seconds, err := strconv.ParseFloat(f.get("Timestamp"), 64)
	at, ok := clock(seconds, time.Second)
	if err != nil || !ok {
		return r, fmt.Errorf("column %q: %s is not a number of seconds", "Timestamp", shown(f.get("Timestamp")))
	}
	r.at = at
	if r.Input, err = f.tokens("Request tokens"); err != nil {
		return r, err
	}
	if r.Output, err = f.tokens("Response tokens"); err != nil {
		return r, err
	}
	r.Failed = r.Output == 0
	r.Model, r.Session = f.get("Model"), f.get("Session ID")
	return r, nil
}

// clock is a time that a trace gives as a number of units.
func clock(n float64, unit time.Duration) (time.Duration, bool) {
	ns := n * float64(unit)
	return time.Duration(ns), ns >= 0 && ns < math.MaxInt64/2
}
