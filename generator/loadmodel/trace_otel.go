package loadmodel

import (
	"bytes"
	"cmp"
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"weir/proxy/wire"
)

// Spans come in two forms, of which a file may hold one document or many, also
// as a list: {"spans": [{"span_id", "start_time", "attributes": {"gen_ai.…":
// …}}]}, and OTLP's {"resourceSpans": [{"scopeSpans": [{"spans": [{"spanId",
// "startTimeUnixNano", "attributes": [{"key", "value"}]}]}]}]}, as collectors
// write it. A document may be a span alone, as SDKs print them, whose ids stand
// in its "context".

// span is a span in either form.
type span struct {
	ID         string          `json:"span_id"`
	IDOTLP     string          `json:"spanId"`
	Trace      string          `json:"trace_id"`
	TraceOTLP  string          `json:"traceId"`
	Parent     string          `json:"parent_span_id"`
	ParentOTLP string          `json:"parentSpanId"`
	State      string          `json:"trace_state"`
	StateOTLP  string          `json:"traceState"`
	Start      json.RawMessage `json:"start_time"`
	StartOTLP  json.RawMessage `json:"startTimeUnixNano"`
	End        json.RawMessage `json:"end_time"`
	EndOTLP    json.RawMessage `json:"endTimeUnixNano"`
	Name       string          `json:"name"`
	Status     json.RawMessage `json:"status"`
	Attributes attributes      `json:"attributes"`
	Context    json.RawMessage `json:"context"`
	ParentSDK  string          `json:"parent_id"`
}

// ids are the hex digits of a span's own ids and of its parent's. SDKs write 0x
// before them.
func (s *span) ids() (trace, id, parent string) {
	var context struct {
		Trace string `json:"trace_id"`
		ID    string `json:"span_id"`
	}
	_ = json.Unmarshal(s.Context, &context) // what is none says nothing
	digits := func(of ...string) string { return strings.TrimPrefix(cmp.Or(of...), "0x") }
	return digits(s.Trace, s.TraceOTLP, context.Trace), digits(s.ID, s.IDOTLP, context.ID), digits(s.Parent, s.ParentOTLP, s.ParentSDK)
}

// failed says whether its status is an error, and what that says.
func (s *span) failed() (failed bool, message string) {
	var status struct {
		Code        json.RawMessage `json:"code"`
		CodeSDK     json.RawMessage `json:"status_code"`
		Message     string          `json:"message"`
		Description string          `json:"description"`
	}
	if json.Unmarshal(s.Status, &status) != nil { // what is no status says nothing
		return false, ""
	}
	code := bytes.ToUpper(bytes.Trim(append(status.Code, status.CodeSDK...), `"`))
	return bytes.Equal(code, []byte("2")) || bytes.HasSuffix(code, []byte("ERROR")), cmp.Or(status.Message, status.Description)
}

// attributes are a span's attributes: texts, numbers and truths.
type attributes map[string]any

// UnmarshalJSON reads an object of values, or OTLP's list of keys and values.
// Numbers are json.Number.
func (a *attributes) UnmarshalJSON(b []byte) error {
	*a = attributes{}
	if len(b) > 0 && b[0] != '[' {
		return decodeNumbers(b, (*map[string]any)(a))
	}
	var list []struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
	if err := decodeNumbers(b, &list); err != nil {
		return err
	}
	for _, pair := range list {
		(*a)[pair.Key] = otlpValue(pair.Value)
	}
	return nil
}

func decodeNumbers(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(into)
}

// otlpValue is a value as OTLP's JSON has it: an object of one member, called
// after its type.
func otlpValue(of map[string]any) any {
	for kind, value := range of {
		text, isText := value.(string)
		list, _ := value.(map[string]any)
		switch {
		case kind == "intValue" && isText:
			return json.Number(text)
		case kind == "arrayValue":
			elements, _ := list["values"].([]any)
			values := make([]any, 0, len(elements))
			for _, e := range elements {
				one, _ := e.(map[string]any)
				values = append(values, otlpValue(one))
			}
			return values
		}
		return value
	}
	return nil
}

// text gives the first of some attributes that is there.
func (a attributes) text(keys ...string) string {
	for _, key := range keys {
		if s, ok := a[key].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// tokens gives the first of some attributes that is a count.
func (a attributes) tokens(keys ...string) wire.Count {
	for _, key := range keys {
		switch v := a[key].(type) {
		case json.Number:
			if f, err := v.Float64(); err == nil && f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
				return wire.N(int64(f))
			}
		case string:
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				return wire.N(n)
			}
		}
	}
	return wire.Count{}
}

// streamed says whether a stream was asked for, if that is told.
func (a attributes) streamed() (streamed, told bool) {
	if a["gen_ai.response.time_to_first_chunk"] != nil {
		return true, true
	}
	for _, key := range []string{"gen_ai.request.stream", "gen_ai.request.is_stream", "llm.is_streaming"} {
		if asked, told := a[key].(bool); told {
			return asked, true
		}
	}
	return false, false
}

// usage is what the span tells of tokens, in the normal form.
func (a attributes) usage() wire.Usage {
	u, _ := wire.Usage{
		Input:      a.tokens("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
		Output:     a.tokens("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
		CacheRead:  a.tokens("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
		CacheWrite: a.tokens("gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens"),
		Reasoning:  a.tokens("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"),
	}.Told(a.text("gen_ai.provider.name", "gen_ai.system"))
	return u
}

// start reads when the span began.
func (s *span) start() (time.Duration, bool) { return instant(s.Start, s.StartOTLP) }

// instant reads the first moment that is there: a time as text, which is UTC
// where it names no zone, or a number since 1970. Of what, its size tells.
func instant(raw, otlp json.RawMessage) (time.Duration, bool) {
	text := timeText(raw, otlp)
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		stamp, ok := parseStamp(text)
		return time.Duration(stamp.UnixNano()), ok
	}
	unit := time.Nanosecond
	switch { // each covers the years from 1973 on
	case n < 1e8 || n >= math.MaxInt64/2:
		return 0, false
	case n < 1e11:
		unit = time.Second
	case n < 1e14:
		unit = time.Millisecond
	case n < 1e17:
		unit = time.Microsecond
	}
	part, err := strconv.ParseFloat("0."+fraction+"0", 64)
	return time.Duration(n)*unit + time.Duration(math.Round(part*float64(unit))), err == nil && n < math.MaxInt64/2/int64(unit)
}

func timeText(raw, otlp json.RawMessage) string {
	if len(raw) == 0 {
		raw = otlp
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return text
}

// zoneless says whether a moment is a time as text that names no zone.
func zoneless(raw, otlp json.RawMessage) bool {
	text := timeText(raw, otlp)
	_, ok := parseStamp(text)
	return ok && !strings.ContainsAny(text[len(time.DateOnly):], "Z+-")
}

// row makes the row of a span of a model call; ok is false for other spans, and
// for those of calls that are blank: they say nothing of their size.
func (s *span) row() (r record, ok, blank bool) {
	name := s.Attributes.text("gen_ai.operation.name", "llm.request.type")
	if op, known := wire.OperationNamed(name); name != "" && !(known && op.Generates()) {
		return r, false, false // agents and tools, which have model calls inside; embeddings
	}
	usage := s.Attributes.usage()
	failed, _ := s.failed()
	r.Failed = failed || s.Attributes.text("error.type") != ""
	output := usage.Output
	if most := s.Attributes.tokens("gen_ai.request.max_tokens"); !output.Known && !r.Failed && most.N > 0 && most.N <= math.MaxInt32 {
		output = most
	}
	r.Input, r.Output = int(usage.Input.N), int(output.N)
	r.Model = s.Attributes.text("gen_ai.request.model")
	r.Session = s.Attributes.text("gen_ai.conversation.id", "session.id")
	streamed, told := s.Attributes.streamed()
	r.Whole, r.silent = told && !streamed, !told
	if r.at, ok = s.start(); !ok {
		return r, false, false
	}
	ok = usage.Input.Known || usage.Output.Known
	return r, ok, !ok && name != ""
}

// beginsWithSpans says whether the file begins with a JSON object that has spans
// in it or is one, or with a list of them.
func (t *Trace) beginsWithSpans() bool {
	f, err := t.open(t.Path)
	if err != nil {
		return false
	}
	defer f.Close()
	d := json.NewDecoder(io.LimitReader(f, 64<<10))
	token, err := d.Token()
	if err == nil && token == json.Delim('[') {
		token, err = d.Token()
	}
	if err != nil || token != json.Delim('{') {
		return false
	}
	named := false // an id of a span stands before
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return false
		}
		switch key {
		case "spans", "resourceSpans":
			token, err := d.Token()
			return err == nil && token == json.Delim('[')
		case "attributes":
			if named {
				return true
			}
		case "span_id", "spanId", "context":
			named = true
		}
		var other json.RawMessage
		if d.Decode(&other) != nil {
			return false
		}
	}
	return false
}

// spansHeld is how many spans may be out of order: they are written when they
// end, and read in the order of their starts.
const spansHeld = 1 << 16

// spanRecords reads the model calls among a file's spans, each once: of a
// client's span and that of the proxy below it, the client's.
func (t *Trace) spanRecords() iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		f, err := t.open(t.Path)
		if err != nil {
			yield(record{}, err)
			return
		}
		defer f.Close()
		t.blank = 0
		histories := t.histories()
		known := recent[string, struct{}]{most: t.keys}
		give := func(s *started) bool {
			known.put(s.id, struct{}{}, 0)
			if _, twice := known.get(s.parent); twice && s.parent != "" {
				return true
			}
			histories.place(&s.record)
			return yield(s.record, nil)
		}
		var held startedHeap
		r := spanReader{d: json.NewDecoder(f), each: func(s *span) bool {
			row, ok, blank := s.row()
			if blank {
				t.blank++
			}
			if !ok {
				return true
			}
			_, id, parent := s.ids()
			heap.Push(&held, &started{record: row, id: id, parent: parent})
			return len(held) <= cmp.Or(t.spans, spansHeld) || give(heap.Pop(&held).(*started))
		}}
		for err = nil; err == nil && r.d.More(); {
			if err = r.document(); errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
		}
		if errors.Is(err, errEnough) {
			return
		}
		if err == nil {
			if token, end := r.d.Token(); !errors.Is(end, io.EOF) {
				err = cmp.Or(end, fmt.Errorf("%v stands where another document should", token))
			}
		}
		for len(held) > 0 {
			if !give(heap.Pop(&held).(*started)) {
				return
			}
		}
		if err != nil {
			yield(record{}, t.problem("at byte %d: %s; mend or cut it there", r.d.InputOffset(), reason(err)))
		}
	}
}

// started is a model call that waits for those that began before it.
type started struct {
	record record
	id     string
	parent string
}

type startedHeap []*started

func (h startedHeap) Len() int           { return len(h) }
func (h startedHeap) Less(i, j int) bool { return h[i].record.at < h[j].record.at }
func (h startedHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *startedHeap) Push(x any)        { *h = append(*h, x.(*started)) }
func (h *startedHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil // else it would be held on
	*h = (*h)[:last]
	return x
}
