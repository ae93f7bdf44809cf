package call

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"weir/proxy/wire"
)

// field is one property of a call as it travels: its key, how it is read out
// of a call, and how it is put back. get gives the empty value for what is
// absent; set passes over a value of another type than get gives, except that
// a number may come in any form. Neither boxes: a span has a hundred of them.
type field struct {
	key attribute.Key
	get func(*Call) attribute.Value
	set func(*Call, attribute.Value)
}

// absent is the value of a property that a call does not have.
var absent attribute.Value

// The prefix of keys that hold a name of the user's.
const labelKey = "weir.label."

// stringField is a name; what is longer is textField.
func stringField[T ~string](key attribute.Key, at func(*Call) *T) field {
	return textField(key, nameLimit, at)
}

func textField[T ~string](key attribute.Key, limit int, at func(*Call) *T) field {
	return field{key,
		func(c *Call) attribute.Value {
			if s := *at(c); s != "" {
				return attribute.StringValue(Shorten(string(s), limit))
			}
			return absent
		},
		func(c *Call, v attribute.Value) {
			if v.Type() == attribute.STRING {
				*at(c) = T(v.AsString())
			}
		}}
}

func intField[T ~int | ~int64](key attribute.Key, at func(*Call) *T) field {
	return field{key,
		func(c *Call) attribute.Value {
			if n := *at(c); n != 0 {
				return attribute.Int64Value(int64(n))
			}
			return absent
		},
		func(c *Call, v attribute.Value) {
			if n, ok := asInt(v); ok {
				*at(c) = T(n)
			}
		}}
}

func durationField(key attribute.Key, at func(*Call) *time.Duration) field {
	return intField(key+"_ns", at)
}

// gapField is known, even as 0, where gaps were measured.
func gapField(key attribute.Key, at func(*Gaps) *time.Duration) field {
	f := durationField(key, func(c *Call) *time.Duration { return at(&c.Gaps) })
	f.get = func(c *Call) attribute.Value {
		if c.Gaps.N == 0 {
			return absent
		}
		return attribute.Int64Value(int64(*at(&c.Gaps)))
	}
	return f
}

func countField(key attribute.Key, at func(*Call) *wire.Count) field {
	return field{key,
		func(c *Call) attribute.Value {
			if n := at(c); n.Known {
				return attribute.Int64Value(n.N)
			}
			return absent
		},
		func(c *Call, v attribute.Value) {
			if n, ok := asInt(v); ok {
				*at(c) = wire.N(n)
			}
		}}
}

func floatField(key attribute.Key, at func(*Call) *wire.Float) field {
	return field{key,
		func(c *Call) attribute.Value {
			if f := at(c); f.Known {
				return attribute.Float64Value(f.F)
			}
			return absent
		},
		func(c *Call, v attribute.Value) {
			switch v.Type() {
			case attribute.FLOAT64:
				*at(c) = wire.F(v.AsFloat64())
			case attribute.INT64:
				*at(c) = wire.F(float64(v.AsInt64()))
			}
		}}
}

func boolField(key attribute.Key, at func(*Call) *bool) field {
	return field{key,
		func(c *Call) attribute.Value {
			if *at(c) {
				return attribute.BoolValue(true)
			}
			return absent
		},
		func(c *Call, v attribute.Value) {
			if v.Type() == attribute.BOOL {
				*at(c) = v.AsBool()
			}
		}}
}

func listField(key attribute.Key, at func(*Call) *[]string) field {
	return field{key,
		func(c *Call) attribute.Value {
			if l := *at(c); len(l) > 0 {
				return attribute.StringSliceValue(fittingNames(l))
			}
			return absent
		},
		func(c *Call, v attribute.Value) {
			if v.Type() == attribute.STRINGSLICE {
				*at(c) = v.AsStringSlice()
			}
		}}
}

// instantField travels as nanoseconds since the call arrived, which is the
// start of its span. Due may be negative.
func instantField(name attribute.Key, at func(*Call) *Instant) field {
	return field{"weir.instant." + name + "_ns",
		func(c *Call) attribute.Value {
			if i := *at(c); i.Reached() {
				return attribute.Int64Value(int64(i - c.Arrived))
			}
			return absent
		},
		func(c *Call, v attribute.Value) {
			if n, ok := asInt(v); ok {
				*at(c) = reached(c.Arrived + Instant(n))
			}
		}}
}

func markFields(name attribute.Key, at func(*Call) *Mark) []field {
	return []field{
		instantField(name+".received", func(c *Call) *Instant { return &at(c).Received }),
		instantField(name+".delivered", func(c *Call) *Instant { return &at(c).Delivered }),
	}
}

// timelineField travels as base64 in an attribute, which must be text. One
// that was cut or damaged on the way is no timeline.
var timelineField = field{KeyTimeline,
	func(c *Call) attribute.Value {
		if len(c.Timeline) > 0 {
			return attribute.StringValue(base64.RawStdEncoding.EncodeToString(c.Timeline))
		}
		return absent
	},
	func(c *Call, v attribute.Value) {
		if b, err := base64.RawStdEncoding.DecodeString(v.AsString()); err == nil && len(b) > 0 {
			c.Timeline = b
		}
	}}

// asInt reads a whole number, in whatever form it was kept.
func asInt(v attribute.Value) (int64, bool) {
	switch v.Type() {
	case attribute.INT64:
		return v.AsInt64(), true
	case attribute.FLOAT64: // as JSON reads it
		f := v.AsFloat64()
		return int64(f), f == float64(int64(f))
	case attribute.STRING: // as OTLP's JSON writes it
		n, err := strconv.ParseInt(v.AsString(), 10, 64)
		return n, err == nil
	}
	return 0, false
}

// valueOf is a property's value from what Properties gave or JSON read.
func valueOf(value any) attribute.Value {
	switch v := value.(type) {
	case string:
		return attribute.StringValue(v)
	case int64:
		return attribute.Int64Value(v)
	case int:
		return attribute.IntValue(v)
	case float64:
		return attribute.Float64Value(v)
	case bool:
		return attribute.BoolValue(v)
	case []string:
		return attribute.StringSliceValue(v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return attribute.Int64Value(n)
		}
		if f, err := v.Float64(); err == nil {
			return attribute.Float64Value(f)
		}
	case []any:
		list := make([]string, 0, len(v))
		for _, e := range v {
			if s, ok := e.(string); ok {
				list = append(list, s)
			}
		}
		return attribute.StringSliceValue(list)
	}
	return absent
}
