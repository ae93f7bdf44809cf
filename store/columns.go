package store

import (
	"encoding/json"
	"strings"
	"time"

	"weir/store/call"
)

// column is a typed column of spans and the property of a call that it holds.
type column struct {
	name string
	key  string
	dict bool // the column holds the id of a name
	flag bool // a truth value, held as 1
}

// columns are the properties that are asked for; all others stand in rest.
var columns = []column{
	{name: "side", key: "weir.side", dict: true},
	{name: "run", key: "weir.run", dict: true},
	{name: "scenario", key: "weir.scenario", dict: true},
	{name: "scenario_from", key: "weir.scenario.from", dict: true},
	{name: "session", key: "gen_ai.conversation.id"},
	{name: "turn", key: "weir.turn"},
	{name: "warm_up", key: "weir.warm_up", flag: true},
	{name: "api", key: "weir.api", dict: true},
	{name: "operation", key: "gen_ai.operation.name", dict: true},
	{name: "provider", key: "gen_ai.provider.name", dict: true},
	{name: "upstream", key: "weir.upstream", dict: true},
	{name: "model", key: "gen_ai.request.model", dict: true},
	{name: "served_model", key: "gen_ai.response.model", dict: true},
	{name: "client", key: "weir.client.name", dict: true},
	{name: "key_fingerprint", key: "weir.key.fingerprint", dict: true},
	{name: "outcome", key: "weir.outcome", dict: true},
	{name: "no_first_token", key: "weir.no_first_token", dict: true},
	{name: "status", key: "http.response.status_code"},
	{name: "streamed", key: "weir.response.streamed", flag: true},
	{name: "input_tokens", key: "gen_ai.usage.input_tokens"},
	{name: "output_tokens", key: "gen_ai.usage.output_tokens"},
	{name: "cache_read_tokens", key: "gen_ai.usage.cache_read.input_tokens"},
	{name: "cache_write_tokens", key: "gen_ai.usage.cache_write.input_tokens"},
	{name: "reasoning_tokens", key: "gen_ai.usage.reasoning.output_tokens"},
	{name: "usage_source", key: "weir.usage.source", dict: true},
	{name: "request_bytes", key: "http.request.body.size"},
	{name: "response_bytes", key: "http.response.body.size"},
	{name: "events", key: "weir.events"},
	{name: "token_events", key: "weir.events.token"},
	{name: "due_ns", key: "weir.instant.due_ns"},
	{name: "body_ns", key: "weir.instant.body_ns"},
	{name: "admitted_ns", key: "weir.instant.admitted_ns"},
	{name: "connected_ns", key: "weir.instant.connected_ns"},
	{name: "sent_ns", key: "weir.instant.sent_ns"},
	{name: "headers_ns", key: "weir.instant.headers_ns"},
	{name: "first_byte_ns", key: "weir.instant.first_byte.received_ns"},
	{name: "first_event_ns", key: "weir.instant.first_event.received_ns"},
	{name: "first_token_ns", key: "weir.instant.first_token.received_ns"},
	{name: "first_token_delivered_ns", key: "weir.instant.first_token.delivered_ns"},
	{name: "last_token_ns", key: "weir.instant.last_token.received_ns"},
	{name: "done_ns", key: "weir.instant.done_ns"},
	{name: "error_type", key: "error.type"},
	{name: "error_message", key: "weir.error.message"},
}

// figures are columns that follow from others, written so that SQL need not
// know the rules.
var figures = []struct {
	name string
	of   func(*call.Call) (time.Duration, bool)
}{
	{"ttft_felt_ns", (*call.Call).TTFTFelt},
	{"ttft_upstream_ns", (*call.Call).TTFTUpstream},
	{"ttft_response_ns", (*call.Call).TTFTResponse},
	{"tpot_ns", (*call.Call).TPOT},
	{"queued_ns", (*call.Call).Queued},
}

var columnOf = func() map[string]int {
	m := map[string]int{}
	for i, c := range columns {
		m[c.key] = i
	}
	return m
}()

const labelKey = "weir.label."

var insertSpan = func() string {
	names := []string{"trace_id", "span_id", "parent_span_id", "writer", "sampled", "start_ns", "labels", "timeline", "rest"}
	for _, f := range figures {
		names = append(names, f.name)
	}
	for _, c := range columns {
		names = append(names, c.name)
	}
	return "INSERT INTO spans (" + strings.Join(names, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(names)-1) + ")"
}()

// rows makes the values of insertSpan, one call's after the other's, in one place.
type rows struct {
	values []any
	rest   object
}

const plainValues = 9 // of insertSpan, before the figures and columns

// row gives the values of a call, which are good until the next one. id turns a
// name into its number.
func (r *rows) row(c *call.Call, writer int64, sampled bool, id func(string) (int64, error)) ([]any, error) {
	if r.values == nil {
		r.values = make([]any, plainValues+len(figures)+len(columns))
	}
	clear(r.values)
	r.rest = r.rest[:0]
	typed := r.values[plainValues+len(figures):]
	var named map[string]string
	for key, v := range c.Properties() {
		i, ok := columnOf[key]
		switch {
		case strings.HasPrefix(key, labelKey):
			if named == nil {
				named = map[string]string{}
			}
			named[strings.TrimPrefix(key, labelKey)] = v.AsString()
		case !ok:
			var err error
			if r.rest, err = r.rest.with(key, v); err != nil {
				return nil, err
			}
		case columns[i].dict:
			name, err := id(v.AsString())
			if err != nil {
				return nil, err
			}
			typed[i] = name
		case columns[i].flag:
			typed[i] = int64(1)
		default:
			typed[i] = v.AsInterface()
		}
	}
	var labels any
	if named != nil {
		b, err := json.Marshal(named)
		if err != nil {
			return nil, err
		}
		labels = string(b)
	}
	copy(r.values, []any{c.TraceID[:], c.SpanID[:], blob(c.ParentSpan[:]), writer, flag(sampled), c.Started().UnixNano(), labels, blob(c.Timeline), r.rest.String()})
	for i, f := range figures {
		if d, ok := f.of(c); ok {
			r.values[plainValues+i] = int64(d)
		}
	}
	return r.values, nil
}

// blob is nil for nothing, or only zeros.
func blob(b []byte) any {
	for _, x := range b {
		if x != 0 {
			return b
		}
	}
	return nil
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// selectSpan asks for what scanSpan reads. Names stand in for their ids.
var selectSpan = func() string {
	names := []string{"s.id", "s.trace_id", "s.span_id", "s.parent_span_id", "s.sampled", "s.start_ns", "s.labels", "s.timeline", "s.rest"}
	for _, c := range columns {
		names = append(names, "s."+c.name)
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM spans s"
}()

// scanSpan reads a row of selectSpan.
func scanSpan(scan func(...any) error, name func(int64) string) (id int64, c *call.Call, sampled bool, err error) {
	var trace, span, parent, timeline []byte
	var labels *string
	var rest string
	var start int64
	typed := make([]any, len(columns))
	into := []any{&id, &trace, &span, &parent, &sampled, &start, &labels, &timeline, &rest}
	for i := range typed {
		into = append(into, &typed[i])
	}
	if err := scan(into...); err != nil {
		return 0, nil, false, err
	}
	c = &call.Call{Instants: call.Instants{Arrived: call.At(time.Unix(0, start))}}
	copy(c.TraceID[:], trace)
	copy(c.SpanID[:], span)
	copy(c.ParentSpan[:], parent)
	if len(timeline) > 0 {
		c.Timeline = timeline
	}
	for i, v := range typed {
		n, isInt := v.(int64)
		switch {
		case v == nil:
		case columns[i].dict && isInt:
			c.SetProperty(columns[i].key, name(n))
		case columns[i].flag:
			c.SetProperty(columns[i].key, true)
		default:
			c.SetProperty(columns[i].key, v)
		}
	}
	return id, c, sampled, setRest(c, rest, labels)
}

// setRest puts back what stands in JSON.
func setRest(c *call.Call, rest string, labels *string) error {
	dec := json.NewDecoder(strings.NewReader(rest))
	dec.UseNumber()
	var more map[string]any
	if err := dec.Decode(&more); err != nil {
		return err
	}
	for key, v := range more {
		if n, ok := v.(json.Number); ok {
			if i, err := n.Int64(); err == nil {
				v = i
			} else if v, err = n.Float64(); err != nil {
				continue
			}
		}
		c.SetProperty(key, v)
	}
	if labels != nil {
		return json.Unmarshal([]byte(*labels), &c.Labels)
	}
	return nil
}
