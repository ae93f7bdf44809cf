package report

import (
	"encoding/json"
	"strconv"
	"time"
)

// Num is a figure that may be absent; the zero Num is absent, which is null in
// JSON, an empty field in CSV and – in text. It is never shown as 0.
type Num struct {
	V     float64
	Known bool
}

// N gives a known figure.
func N(v float64) Num { return Num{v, true} }

// Ms gives a duration in milliseconds.
func Ms(d time.Duration) Num { return N(float64(d) / float64(time.Millisecond)) }

// msIf gives a duration where it is known.
func msIf(d time.Duration, ok bool) Num {
	if !ok {
		return Num{}
	}
	return Ms(d)
}

// share is part/whole; absent when whole is 0.
func share(part, whole int64) Num {
	if whole == 0 {
		return Num{}
	}
	return N(float64(part) / float64(whole))
}

// MarshalJSON writes the number, or null.
func (n Num) MarshalJSON() ([]byte, error) {
	if !n.Known {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, round(n.V), 'f', -1, 64), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (n *Num) UnmarshalJSON(b []byte) error {
	*n = Num{}
	if string(b) == "null" {
		return nil
	}
	n.Known = true
	return json.Unmarshal(b, &n.V)
}

// round keeps nanoseconds of a millisecond figure, which is what the clock
// gives: more prints as 0.30000000000000004.
func round(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', 6, 64), 64)
	if err != nil {
		return v // an infinity prints as itself
	}
	return r
}
