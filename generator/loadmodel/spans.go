package loadmodel

import (
	"bytes"
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
	Failed            bool      // its status is an error
	Message           string    // of its status

	// Attributes are string, bool, json.Number or []any of them.
	Attributes map[string]any
}

// ReadSpans reads the spans of one document or many, in either form, one after
// the other. An error ends them, and says at which byte it is. beside is given
// what else stands in the documents; nil passes over it.
func ReadSpans(r io.Reader, beside func(key string, value json.RawMessage)) iter.Seq2[*Span, error] {
	return func(yield func(*Span, error) bool) {
		reader := spanReader{d: json.NewDecoder(r), beside: beside, each: func(s *span) bool { return yield(s.exported(), nil) }}
		var err error
		for err == nil && reader.d.More() {
			err = reader.object()
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
		Trace: cmp.Or(s.Trace, s.TraceOTLP), ID: cmp.Or(s.ID, s.IDOTLP), Parent: cmp.Or(s.Parent, s.ParentOTLP),
		TraceState: cmp.Or(s.State, s.StateOTLP), Name: s.Name, Attributes: s.Attributes,
	}
	if at, ok := instant(s.Start, s.StartOTLP); ok {
		out.Start = time.Unix(0, int64(at))
	}
	if at, ok := instant(s.End, s.EndOTLP); ok {
		out.End = time.Unix(0, int64(at))
	}
	var status struct {
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(s.Status, &status) == nil { // what is no status says nothing
		out.Message = status.Message
		code := bytes.ToUpper(bytes.Trim(status.Code, `"`))
		out.Failed = bytes.Equal(code, []byte("2")) || bytes.HasSuffix(code, []byte("ERROR"))
	}
	return out
}
