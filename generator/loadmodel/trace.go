package loadmodel

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"time"
)

// Row is one request of a recorded trace.
type Row struct {
	At      time.Duration // since the trace's first row
	Input   int           // prompt tokens
	Output  int           // generated tokens
	Model   string        // empty when the trace does not say
	Session string        // empty when the row stands alone
	HashIDs []int         // blocks of the prompt; equal ids are equal text
	Failed  bool          // the recorded request failed
}

// TraceOptions say how a trace is read. The zero value reads all of it, in its
// own time, and finds its format out.
type TraceOptions struct {
	Format string  // "azure", "burstgpt", "mooncake" or "bailian"; empty: by its first line
	Speed  float64 // 2 plays it in half the time; 0 is 1
	Limit  int     // rows; 0: all
}

// Trace is a file of recorded requests. It is read as it is used, in constant
// memory.
type Trace struct {
	Path    string
	Format  string
	options TraceOptions
	read    lineReader
}

// lineReader turns one record of a trace into a row; at is its time in the
// trace's own clock.
type lineReader func(record []string, columns map[string]int) (row Row, at time.Duration, err error)

// OpenTrace finds out what a trace is. It reads no more than its beginning.
func OpenTrace(path string, o TraceOptions) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %s", path, reason(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("trace %s: is a directory; name the file in it", path)
	}
	head := make([]byte, 64<<10)
	n, err := io.ReadFull(f, head)
	if n == 0 {
		return nil, fmt.Errorf("trace %s: is empty", path)
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("trace %s: %s", path, reason(err))
	}
	t := &Trace{Path: path, Format: o.Format, options: o}
	if t.Format == "" {
		t.Format = sniff(head[:n])
	}
	if t.Format == "" {
		return nil, fmt.Errorf("trace %s: its first line is of no format that weir knows: want the columns of Azure (TIMESTAMP,ContextTokens,GeneratedTokens) or BurstGPT, or JSON lines of Mooncake or Bailian", path)
	}
	if t.read = traceReaders[t.Format]; t.read == nil && !isJSONLines(t.Format) {
		return nil, fmt.Errorf("trace %s: format %q is not known; want azure, burstgpt, mooncake or bailian", path, t.Format)
	}
	return t, nil
}

func isJSONLines(format string) bool { return format == "mooncake" || format == "bailian" }

// LooksLikeTrace says whether a file is a trace rather than a load model.
func LooksLikeTrace(path string) bool {
	t, err := OpenTrace(path, TraceOptions{})
	return err == nil && t.Format != ""
}

// sniff names the format by the first line.
func sniff(head []byte) string {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	line, _, _ := bytes.Cut(head, []byte{'\n'})
	line = bytes.TrimSpace(line)
	if len(line) > 0 && line[0] == '{' {
		var fields map[string]json.RawMessage
		if json.Unmarshal(line, &fields) != nil {
			return ""
		}
		_, chat := fields["chat_id"]
		_, length := fields["input_length"]
		switch {
		case chat && length:
			return "bailian"
		case length:
			return "mooncake"
		}
		return ""
	}
	names := strings.ToLower(string(line))
	switch {
	case strings.Contains(names, "contexttokens") && strings.Contains(names, "timestamp"):
		return "azure"
	case strings.Contains(names, "request tokens") && strings.Contains(names, "timestamp"):
		return "burstgpt"
	}
	return ""
}

// Rows reads the rows in their order, from the first one's time on, at the
// speed asked for. Rows whose time goes back keep the time of the row before.
// After an error, which names its line, there are no more.
func (t *Trace) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		f, err := os.Open(t.Path)
		if err != nil {
			yield(Row{}, fmt.Errorf("trace %s: %s", t.Path, reason(err)))
			return
		}
		defer f.Close()
		speed := t.options.Speed
		if speed <= 0 {
			speed = 1
		}
		var first, last time.Duration
		n := 0
		for row, at := range t.records(f, func(line int, err error) {
			yield(Row{}, fmt.Errorf("trace %s:%d: %w", t.Path, line, err))
		}) {
			if n == 0 {
				first, last = at, at
			}
			last = max(last, at)
			row.At = time.Duration(float64(last-first) / speed)
			n++
			if !yield(row, nil) || n == t.options.Limit {
				return
			}
		}
	}
}

// records reads rows with their own clock; fail is told of the first fault.
func (t *Trace) records(f io.Reader, fail func(line int, err error)) iter.Seq2[Row, time.Duration] {
	if isJSONLines(t.Format) {
		return jsonRecords(f, t.Format, fail)
	}
	return t.csvRecords(f, fail)
}

func (t *Trace) csvRecords(f io.Reader, fail func(int, error)) iter.Seq2[Row, time.Duration] {
	return func(yield func(Row, time.Duration) bool) {
		r := csv.NewReader(bufio.NewReaderSize(f, 256<<10))
		r.ReuseRecord, r.FieldsPerRecord, r.TrimLeadingSpace = true, -1, true
		head, err := r.Read()
		if err != nil {
			fail(1, err)
			return
		}
		columns := map[string]int{}
		for i, name := range head {
			columns[strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))] = i
		}
		for {
			record, err := r.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			line, _ := r.FieldPos(0)
			if err != nil {
				fail(line, err)
				return
			}
			row, at, err := t.read(record, columns)
			if err != nil {
				fail(line, err)
				return
			}
			if !yield(row, at) {
				return
			}
		}
	}
}

var traceReaders = map[string]lineReader{"azure": azureRow, "burstgpt": burstRow}

// column reads a record's field by its name.
func column(record []string, columns map[string]int, name string) (string, error) {
	i, ok := columns[name]
	if !ok {
		return "", fmt.Errorf("column %q is missing from the header", name)
	}
	if i >= len(record) {
		return "", fmt.Errorf("column %q is missing from this row", name)
	}
	return strings.TrimSpace(record[i]), nil
}

func tokenColumn(record []string, columns map[string]int, name string) (int, error) {
	s, err := column(record, columns, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("column %q: %q is not a number of tokens", name, s)
	}
	return int(n), nil
}

// azureRow reads the Azure LLM inference traces: a wall clock without a zone.
func azureRow(record []string, columns map[string]int) (row Row, at time.Duration, err error) {
	s, err := column(record, columns, "timestamp")
	if err != nil {
		return row, 0, err
	}
	stamp, err := parseStamp(s)
	if err != nil {
		return row, 0, err
	}
	if row.Input, err = tokenColumn(record, columns, "contexttokens"); err != nil {
		return row, 0, err
	}
	row.Output, err = tokenColumn(record, columns, "generatedtokens")
	return row, time.Duration(stamp.UnixNano()), err
}

func parseStamp(s string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999Z07:00"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("column %q: %q is not a time", "timestamp", s)
}

// burstRow reads BurstGPT: seconds, and no response tokens for a failure.
func burstRow(record []string, columns map[string]int) (row Row, at time.Duration, err error) {
	s, err := column(record, columns, "timestamp")
	if err != nil {
		return row, 0, err
	}
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return row, 0, fmt.Errorf("column %q: %q is not a number of seconds", "timestamp", s)
	}
	if row.Input, err = tokenColumn(record, columns, "request tokens"); err != nil {
		return row, 0, err
	}
	if row.Output, err = tokenColumn(record, columns, "response tokens"); err != nil {
		return row, 0, err
	}
	row.Failed = row.Output == 0
	row.Model, _ = column(record, columns, "model")
	row.Session, _ = column(record, columns, "session id")
	return row, time.Duration(seconds * float64(time.Second)), nil
}

// jsonRow is a line of Mooncake or Bailian.
type jsonRow struct {
	Timestamp *float64 `json:"timestamp"`
	Input     *int     `json:"input_length"`
	Output    *int     `json:"output_length"`
	HashIDs   []int    `json:"hash_ids"`
	Chat      *int64   `json:"chat_id"`
	Parent    *int64   `json:"parent_chat_id"`
	Session   string   `json:"session_id"`
}

func jsonRecords(f io.Reader, format string, fail func(int, error)) iter.Seq2[Row, time.Duration] {
	unit := time.Millisecond
	if format == "bailian" {
		unit = time.Second
	}
	return func(yield func(Row, time.Duration) bool) {
		r := bufio.NewReaderSize(f, 256<<10)
		for line := 1; ; line++ {
			b, err := r.ReadBytes('\n')
			if len(bytes.TrimSpace(b)) > 0 {
				var j jsonRow
				if e := json.Unmarshal(b, &j); e != nil {
					fail(line, e)
					return
				}
				if j.Timestamp == nil || j.Input == nil || j.Output == nil || *j.Input < 0 || *j.Output < 0 {
					fail(line, errors.New("want timestamp, input_length and output_length, none of them negative"))
					return
				}
				row := Row{Input: *j.Input, Output: *j.Output, HashIDs: j.HashIDs, Session: j.Session, Failed: *j.Output == 0}
				if j.Chat != nil && j.Parent != nil && *j.Parent >= 0 {
					row.Session = strconv.FormatInt(*j.Parent, 10)
				}
				if !yield(row, time.Duration(*j.Timestamp*float64(unit))) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				fail(line, err)
				return
			}
		}
	}
}
