package call

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
)

// fieldOf finds a field by its key.
var fieldOf = func() map[attribute.Key]*field {
	m := make(map[attribute.Key]*field, len(fields))
	for i := range fields {
		m[fields[i].key] = &fields[i]
	}
	return m
}()

// SpanName is "{operation} {model}", by the GenAI conventions.
func (c *Call) SpanName() string {
	if c.Request.Model == "" {
		return fittingName(string(c.Operation))
	}
	return fittingName(string(c.Operation)) + " " + fittingName(c.Request.Model)
}

// SpanStatus is the status of the call's span: an error, with the beginning of
// its message, for every outcome but ok.
func (c *Call) SpanStatus() (codes.Code, string) {
	if c.Outcome == OK || c.Outcome == "" {
		return codes.Unset, ""
	}
	return codes.Error, storable(c.ErrorMessage, nameLimit)
}

// Properties are the keys and values of all that is known of a call but its
// ids, Arrived and Timeline: what its span's attributes are made of. Values are
// texts, whole numbers, numbers, truth values or lists of texts; instants are
// nanoseconds since Arrived.
func (c *Call) Properties() iter.Seq2[string, attribute.Value] {
	return func(yield func(string, attribute.Value) bool) {
		for i := range fields {
			if fields[i].key == KeyTimeline {
				continue
			}
			if v := fields[i].get(c); v.Type() != attribute.EMPTY && !yield(string(fields[i].key), v) {
				return
			}
		}
		for _, kv := range c.appendLabels(nil) {
			if !yield(string(kv.Key), kv.Value) {
				return
			}
		}
	}
}

// SetProperty puts back what Properties gave, as a Go value; Arrived must be set
// before. It takes numbers as JSON reads them too, and passes over unknown keys.
func (c *Call) SetProperty(key string, value any) { c.set(attribute.Key(key), valueOf(value)) }

func (c *Call) set(key attribute.Key, v attribute.Value) {
	if f := fieldOf[key]; f != nil {
		f.set(c, v)
		return
	}
	if name, ok := strings.CutPrefix(string(key), labelKey); ok && v.Type() == attribute.STRING {
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels[name] = v.AsString()
	}
}

// StartAttributes are those that the conventions want at a span's creation,
// and those by which a call in flight is listed.
func (c *Call) StartAttributes() []attribute.KeyValue {
	return c.appendLabels(appendFields(make([]attribute.KeyValue, 0, len(startFields)+len(c.Labels)), c, startFields))
}

// Attributes are all of them; FromAttributes reads them back. Beside the
// properties there are the figures that follow from them, for those who read the
// spans elsewhere.
func (c *Call) Attributes() []attribute.KeyValue {
	return c.AppendAttributes(make([]attribute.KeyValue, 0, 128))
}

// AppendAttributes puts them behind others.
func (c *Call) AppendAttributes(list []attribute.KeyValue) []attribute.KeyValue {
	list = appendFields(list, c, startFields)
	return c.appendFigures(appendFields(c.appendLabels(list), c, endFields))
}

func appendFields(list []attribute.KeyValue, c *Call, of []field) []attribute.KeyValue {
	for i := range of {
		if v := of[i].get(c); v.Type() != attribute.EMPTY {
			list = append(list, attribute.KeyValue{Key: of[i].key, Value: v})
		}
	}
	return list
}

func (c *Call) appendLabels(list []attribute.KeyValue) []attribute.KeyValue {
	if len(c.Labels) > 0 {
		names := slices.Sorted(maps.Keys(c.Labels))
		for _, name := range names[:min(len(names), listLimit)] {
			list = append(list, Attribute(labelKey+fittingName(name), c.Labels[name]))
		}
	}
	return list
}

// FromAttributes reads a call from its attributes alone, wherever they were
// stored or sent. started is when it arrived, which is its span's start; the
// instants are on this process's clock. ok is false when the attributes are of
// another kind of span.
func FromAttributes(list []attribute.KeyValue, started time.Time) (c *Call, ok bool) {
	c = &Call{Instants: Instants{Arrived: At(started)}}
	for _, kv := range list {
		c.set(kv.Key, kv.Value)
	}
	return c, c.Side != ""
}
