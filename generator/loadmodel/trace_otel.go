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
	"time"
)

// Spans come in two forms, of which a file may hold one document or many:
// {"spans": [{"span_id", "start_time", "attributes": {"gen_ai.…": …}}]}, and
// OTLP's {"resourceSpans": [{"scopeSpans": [{"spans": [{"spanId",
// "startTimeUnixNano", "attributes": [{"key", "value"}]}]}]}]}, as collectors
// write it.

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

// tokens gives the first of some attributes that is a count; false when none is.
func (a attributes) tokens(keys ...string) (int, bool) {
	for _, key := range keys {
		switch v := a[key].(type) {
		case json.Number:
			f, err := v.Float64()
			return int(f), err == nil && f >= 0 && f <= math.MaxInt32
		case string:
			n, err := strconv.Atoi(v)
			return n, err == nil && tokenCount(n)
		}
	}
	return 0, false
}

// start reads when the span began.
func (s *span) start() (time.Duration, bool) { return instant(s.Start, s.StartOTLP) }

// instant reads the first moment that is there: a time as text, or nanoseconds.
func instant(raw, otlp json.RawMessage) (time.Duration, bool) {
	if len(raw) == 0 {
		raw = otlp
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Duration(n), n > 0 && n < math.MaxInt64/2
	}
	stamp, ok := parseStamp(text)
	return time.Duration(stamp.UnixNano()), ok
}

// row makes the row of a span of a model call; false for other spans, and for
// those that say nothing of their size.
func (s *span) row() (r record, ok bool) {
	switch s.Attributes.text("gen_ai.operation.name") {
	case "", "chat", "text_completion", "generate_content":
	default: // agents and tools, which have model calls inside; embeddings
		return r, false
	}
	var in, out bool
	r.Input, in = s.Attributes.tokens("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
	r.Output, out = s.Attributes.tokens("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
	r.Failed = s.Attributes.text("error.type") != ""
	r.Model = s.Attributes.text("gen_ai.request.model")
	r.Session = s.Attributes.text("gen_ai.conversation.id")
	if r.at, ok = s.start(); !ok {
		return r, false
	}
	return r, in || out
}

// beginsWithSpans says whether the file is a JSON object with spans in it.
func (t *Trace) beginsWithSpans() bool {
	f, err := t.open(t.Path)
	if err != nil {
		return false
	}
	defer f.Close()
	d := json.NewDecoder(io.LimitReader(f, 64<<10))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return false
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return false
		}
		if key == "spans" || key == "resourceSpans" {
			token, err := d.Token()
			return err == nil && token == json.Delim('[')
		}
		var other json.RawMessage
		if d.Decode(&other) != nil {
			return false
		}
	}
	return false
}

// spanReader walks through documents of spans without holding one.
type spanReader struct {
	d      *json.Decoder
	each   func(*span) bool
	beside func(key string, value json.RawMessage) // nil: nobody asks for the rest
}

var errEnough = errors.New("no more is wanted")

// object reads the rest of an object, or all of one.
func (r *spanReader) object() error {
	if err := r.delim('{'); err != nil {
		return err
	}
	for r.d.More() {
		key, err := r.d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "spans":
			err = r.list(func() error {
				var s span
				if err := r.d.Decode(&s); err != nil {
					return err
				}
				if !r.each(&s) {
					return errEnough
				}
				return nil
			})
		case "resourceSpans", "scopeSpans":
			err = r.list(r.object)
		default:
			var other json.RawMessage
			if err = r.d.Decode(&other); err == nil && r.beside != nil {
				r.beside(fmt.Sprint(key), other)
			}
		}
		if err != nil {
			return err
		}
	}
	return r.delim('}')
}

func (r *spanReader) list(element func() error) error {
	if err := r.delim('['); err != nil {
		return err
	}
	for r.d.More() {
		if err := element(); err != nil {
			return err
		}
	}
	return r.delim(']')
}

func (r *spanReader) delim(want json.Delim) error {
	token, err := r.d.Token()
	if err == nil && token != want {
		err = fmt.Errorf("%v stands where %v should", token, want)
	}
	return err
}

// spansHeld is how far spans may be out of order: they are written when they
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
			row, ok := s.row()
			if !ok {
				return true
			}
			heap.Push(&held, &started{record: row, id: cmp.Or(s.ID, s.IDOTLP), parent: cmp.Or(s.Parent, s.ParentOTLP)})
			return len(held) <= spansHeld || give(heap.Pop(&held).(*started))
		}}
		for err = nil; err == nil && r.d.More(); {
			if err = r.object(); errors.Is(err, io.EOF) {
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
	*h = (*h)[:last]
	return x
}
