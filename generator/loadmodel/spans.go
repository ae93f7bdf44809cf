package loadmodel

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Span is a span of any kind as a file of JSON has it.
type Span struct {
	Trace, ID, Parent string // hex digits; Parent is empty when there is none
	TraceState        string
	Name              string
	Start, End        time.Time // the zero time where it is not known
	Zoneless          bool      // one of them names no zone, and was taken for UTC
	Failed            bool      // its status is an error
	Message           string    // of its status

	// Attributes are string, bool, json.Number or []any of them.
	Attributes map[string]any
}

// ReadSpans reads the spans of one document or many, in either form, one after
// the other or as a list. An error ends them, and says at which byte it is. beside is given
// what else stands in the documents; nil passes over it.
func ReadSpans(r io.Reader, beside func(key string, value json.RawMessage)) iter.Seq2[*Span, error] {
	return func(yield func(*Span, error) bool) {
		reader := spanReader{d: json.NewDecoder(r), beside: beside, each: func(s *span) bool { return yield(s.exported(), nil) }}
		var err error
		for err == nil && reader.d.More() {
			err = reader.document()
		}
		if err == nil {
			if token, end := reader.d.Token(); !errors.Is(end, io.EOF) {
				err = cmp.Or(end, fmt.Errorf("%v stands where another document should", token))
			}
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, fmt.Errorf("at byte %d: %s; mend or cut it there", reader.d.InputOffset(), reason(err)))
		}
	}
}

func (s *span) exported() *Span {
	out := &Span{
		TraceState: cmp.Or(s.State, s.StateOTLP), Name: s.Name, Attributes: s.Attributes,
		Zoneless: zoneless(s.Start, s.StartOTLP) || zoneless(s.End, s.EndOTLP),
	}
	out.Trace, out.ID, out.Parent = s.ids()
	out.Failed, out.Message = s.failed()
	if at, ok := instant(s.Start, s.StartOTLP); ok {
		out.Start = time.Unix(0, int64(at))
	}
	if at, ok := instant(s.End, s.EndOTLP); ok {
		out.End = time.Unix(0, int64(at))
	}
	return out
}

// spanReader walks through documents of spans without holding one.
type spanReader struct {
	d      *json.Decoder
	each   func(*span) bool
	beside func(key string, value json.RawMessage) // nil: nobody asks for the rest
}

var errEnough = errors.New("no more is wanted")

// document reads an object, or a list of them.
func (r *spanReader) document() error {
	token, err := r.d.Token()
	switch {
	case err != nil:
		return err
	case token == json.Delim('{'):
		return r.members()
	case token == json.Delim('['):
		return r.elements(r.object)
	}
	return fmt.Errorf("%v stands where { or [ should", token)
}

func (r *spanReader) object() error {
	if err := r.delim('{'); err != nil {
		return err
	}
	return r.members()
}

// members reads the rest of an object.
func (r *spanReader) members() error {
	others := map[string]json.RawMessage{}
	for r.d.More() {
		key, err := r.d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "spans":
			err = r.list(r.span)
		case "resourceSpans", "scopeSpans":
			err = r.list(r.object)
		default:
			var other json.RawMessage
			if err = r.d.Decode(&other); err == nil {
				others[fmt.Sprint(key)] = other
			}
		}
		if err != nil {
			return err
		}
	}
	if err := r.delim('}'); err != nil {
		return err
	}
	return r.rest(others)
}

// rest reads what an object holds beside lists of spans: it may be one itself.
func (r *spanReader) rest(of map[string]json.RawMessage) error {
	has := func(key string) bool { return len(of[key]) > 0 }
	if has("attributes") && (has("span_id") || has("spanId") || has("context")) {
		text, err := json.Marshal(of)
		if err != nil {
			return err
		}
		var s span
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		return r.take(&s)
	}
	if r.beside != nil {
		for key, value := range of {
			r.beside(key, value)
		}
	}
	return nil
}

func (r *spanReader) span() error {
	var s span
	if err := r.d.Decode(&s); err != nil {
		return err
	}
	return r.take(&s)
}

func (r *spanReader) take(s *span) error {
	if !r.each(s) {
		return errEnough
	}
	return nil
}

func (r *spanReader) list(element func() error) error {
	if err := r.delim('['); err != nil {
		return err
	}
	return r.elements(element)
}

// elements reads the rest of a list.
func (r *spanReader) elements(element func() error) error {
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
