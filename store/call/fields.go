package call

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"weir/proxy/wire"
)

// field is one property of a call as it travels: its key, how it is read out
// of a call, and how it is put back. get gives nil for what is absent; its
// values are string, int64, float64, bool or []string.
type field struct {
	key string
	get func(*Call) any
	set func(*Call, any)
}

// The prefixes of keys that hold a name of the user's.
const labelKey = "weir.label."

func stringField[T ~string](key string, at func(*Call) *T) field {
	return field{key,
		func(c *Call) any {
			if s := *at(c); s != "" {
				return string(s)
			}
			return nil
		},
		func(c *Call, v any) {
			if s, ok := v.(string); ok {
				*at(c) = T(s)
			}
		}}
}

func intField[T ~int | ~int64](key string, at func(*Call) *T) field {
	return field{key,
		func(c *Call) any {
			if n := *at(c); n != 0 {
				return int64(n)
			}
			return nil
		},
		func(c *Call, v any) {
			if n, ok := asInt(v); ok {
				*at(c) = T(n)
			}
		}}
}

func countField(key string, at func(*Call) *wire.Count) field {
	return field{key,
		func(c *Call) any {
			if n := *at(c); n.Known {
				return n.N
			}
			return nil
		},
		func(c *Call, v any) {
			if n, ok := asInt(v); ok {
				*at(c) = wire.N(n)
			}
		}}
}

func floatField(key string, at func(*Call) *wire.Float) field {
	return field{key,
		func(c *Call) any {
			if f := *at(c); f.Known {
				return f.F
			}
			return nil
		},
		func(c *Call, v any) {
			switch f := v.(type) {
			case float64:
				*at(c) = wire.F(f)
			case int64:
				*at(c) = wire.F(float64(f))
			case json.Number:
				if x, err := f.Float64(); err == nil {
					*at(c) = wire.F(x)
				}
			}
		}}
}

func boolField(key string, at func(*Call) *bool) field {
	return field{key,
		func(c *Call) any {
			if *at(c) {
				return true
			}
			return nil
		},
		func(c *Call, v any) { *at(c), _ = v.(bool) }}
}

func listField(key string, at func(*Call) *[]string) field {
	return field{key,
		func(c *Call) any {
			if l := *at(c); len(l) > 0 {
				return l
			}
			return nil
		},
		func(c *Call, v any) {
			switch l := v.(type) {
			case []string:
				*at(c) = slices.Clone(l)
			case []any: // as JSON reads it
				for _, e := range l {
					if s, ok := e.(string); ok {
						*at(c) = append(*at(c), s)
					}
				}
			}
		}}
}

// instantField travels as nanoseconds since the call arrived, which is the
// start of its span. Due may be negative.
func instantField(name string, at func(*Call) *Instant) field {
	return field{"weir.instant." + name + "_ns",
		func(c *Call) any {
			if i := *at(c); i.Reached() {
				return int64(i - c.Arrived)
			}
			return nil
		},
		func(c *Call, v any) {
			if n, ok := asInt(v); ok {
				*at(c) = reached(c.Arrived + Instant(n))
			}
		}}
}

func markFields(name string, at func(*Call) *Mark) []field {
	return []field{
		instantField(name+".received", func(c *Call) *Instant { return &at(c).Received }),
		instantField(name+".delivered", func(c *Call) *Instant { return &at(c).Delivered }),
	}
}

func durationField(key string, at func(*Call) *time.Duration) field {
	return intField(key+"_ns", at)
}

func asInt(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64: // as JSON reads it
		return int64(n), n == float64(int64(n))
	case json.Number:
		i, err := n.Int64()
		return i, err == nil
	case string:
		i, err := strconv.ParseInt(n, 10, 64)
		return i, err == nil
	}
	return 0, false
}

// timelineField travels as base64 in an attribute, which must be text.
var timelineField = field{KeyTimeline,
	func(c *Call) any {
		if len(c.Timeline) > 0 {
			return base64.RawStdEncoding.EncodeToString(c.Timeline)
		}
		return nil
	},
	func(c *Call, v any) {
		if s, ok := v.(string); ok {
			if b, err := base64.RawStdEncoding.DecodeString(s); err == nil {
				c.Timeline = b
			}
		}
	}}
