package call

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"weir/proxy/wire"
)

// fill sets every field of v to something that is not its zero value.
func fill(v reflect.Value, rng *rand.Rand) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(rune('a'+rng.IntN(26))) + "世")
	case reflect.Int, reflect.Int64:
		v.SetInt(1 + rng.Int64N(1e9))
	case reflect.Float64:
		v.SetFloat(rng.Float64() + 0.1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		fill(p.Elem(), rng)
		v.Set(p)
	case reflect.Array, reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), rng)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{5, 1})
			return
		}
		fill(v.Index(0), rng)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"team": "a", "区": "b"}))
	}
}

// full is a call of which everything is known.
func full(seed uint64) *Call {
	c := &Call{}
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		switch v.Type().Field(i).Name {
		case "TraceID", "SpanID", "ParentSpan":
		default:
			fill(v.Field(i), rand.New(rand.NewPCG(seed, 0)))
		}
	}
	c.Request.User = "" // never leaves the process
	c.Arrived = At(time.Unix(1_800_000_000, 123456789))
	c.Due = c.Arrived - 5
	return c
}

// span writes c's attributes and reads them back.
func span(t *testing.T, c *Call) *Call {
	t.Helper()
	back, ok := FromAttributes(c.Attributes(), c.Arrived.Time())
	if !ok {
		t.Fatal("FromAttributes does not know weir's own attributes")
	}
	back.TraceState = c.TraceState // is no attribute
	return back
}

func TestCallSurvivesItsSpan(t *testing.T) {
	for seed := range uint64(20) {
		c := full(seed)
		if diff := cmp.Diff(c, span(t, c)); diff != "" {
			t.Fatalf("seed %d: a full call changed on its way through a span:\n%s", seed, diff)
		}
	}
}

func TestAbsentStaysAbsent(t *testing.T) {
	c := &Call{Side: Proxy, Operation: wire.OpChat, Instants: Instants{Arrived: Now()}}
	for key := range c.Properties() {
		if key != keySide && key != keyOperation {
			t.Errorf("an empty call states %s", key)
		}
	}
	if diff := cmp.Diff(c, span(t, c)); diff != "" {
		t.Errorf("an empty call changed on its way through a span:\n%s", diff)
	}
}

func TestKeysAreSpelledOnce(t *testing.T) {
	seen := map[attribute.Key]bool{}
	for _, f := range fields {
		if seen[f.key] {
			t.Errorf("%s stands twice", f.key)
		}
		seen[f.key] = true
	}
}

// Strings of an upstream's that are no UTF-8 would make exporters drop the
// whole batch.
func TestAttributesAreValidUTF8(t *testing.T) {
	c := full(1)
	c.ServedModel, c.Finish, c.Request.Stop = "m\xff", "st\xffop", []string{"ok", "\xfe"}
	for _, kv := range c.Attributes() {
		for _, s := range append([]string{kv.Value.String()}, kv.Value.AsStringSlice()...) {
			if !utf8.ValidString(s) {
				t.Errorf("%s holds %q", kv.Key, s)
			}
		}
	}
	if c.Request.Stop[1] != "\xfe" {
		t.Error("Attributes changed the call")
	}
}

// Another process reads the same figures: instants are only differences.
func TestFiguresSurviveAnotherProcess(t *testing.T) {
	c := full(2)
	started := time.Unix(0, c.Arrived.Time().UnixNano()).Add(-72 * time.Hour) // another clock
	got, ok := FromAttributes(c.Attributes(), started)
	if !ok || !got.Started().Equal(started) {
		t.Fatalf("ok %v, started %v, want %v", ok, got.Started(), started)
	}
	for name, figure := range map[string]func(*Call) (time.Duration, bool){
		"ttft upstream": (*Call).TTFTUpstream, "ttft felt": (*Call).TTFTFelt, "ttft response": (*Call).TTFTResponse,
		"tpot": (*Call).TPOT, "lag": (*Call).Lag, "duration": (*Call).Duration, "to last token": (*Call).ToLastToken,
	} {
		want, wantOK := figure(c)
		if d, ok := figure(got); d != want || ok != wantOK {
			t.Errorf("%s is %v, was %v", name, d, want)
		}
	}
	a, _ := c.Account()
	if b, _ := got.Account(); a != b {
		t.Errorf("account is %+v, was %+v", b, a)
	}
}

// A measured call takes the way through JSON, as a store may keep it.
func TestPropertiesSurviveJSON(t *testing.T) {
	c := full(3)
	properties := map[string]any{}
	for key, value := range c.Properties() {
		properties[key] = value.AsInterface()
	}
	text, err := json.Marshal(properties)
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	got := &Call{Instants: Instants{Arrived: c.Arrived}, Timeline: c.Timeline} // it is no property
	for key, value := range read {
		got.SetProperty(key, value)
	}
	if diff := cmp.Diff(c, got); diff != "" {
		t.Error(diff)
	}
}

func TestASpanOfAnotherKindIsNoCall(t *testing.T) {
	if _, ok := FromAttributes([]attribute.KeyValue{attribute.String("http.request.method", "GET")}, time.Now()); ok {
		t.Error("a span without weir.side was taken for a call")
	}
}

func TestDamagedAttributesArePassedOver(t *testing.T) {
	want := &Call{Side: Proxy, Instants: Instants{Arrived: t0}}
	got, ok := FromAttributes([]attribute.KeyValue{
		attribute.String(keySide, "proxy"), attribute.String("weir.turn", "x"), attribute.Bool("server.port", true),
		attribute.String(KeyTimeline, "%%%"), attribute.Int("weir.outcome", 3), attribute.String("gen_ai.request.stream", "yes"),
		attribute.Int("gen_ai.response.finish_reasons", 1), attribute.String("weir.of.the.future", "x"), attribute.Int("weir.label.n", 1),
	}, t0.Time())
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("ok %v\n%s", ok, diff)
	}
}

// What others read by name: present where it applies, absent elsewhere.
func TestFiguresBesideTheProperties(t *testing.T) {
	streamed := func() *Call {
		return &Call{Side: Proxy, API: wire.Chat, Streamed: true, Gaps: Gaps{N: 3}, Instants: Instants{
			Arrived: t0, Body: t0 + ms, Admitted: t0 + 2*ms, Connected: t0 + 3*ms, Sent: t0 + 5*ms, FirstEvent: at(10), FirstToken: at(20), LastToken: at(30), Done: t0 + 40*ms}}
	}
	const none = "absent"
	for _, row := range []struct {
		sentence string
		change   func(*Call)
		key      attribute.Key
		want     string
	}{
		{"first chunk, in seconds from the end of the request", func(*Call) {}, keyFirstChunk, "0.005"},
		{"not streamed → no first chunk", func(c *Call) { c.Streamed = false }, keyFirstChunk, none},
		{"upstream TTFT", func(*Call) {}, keyTTFTUpstream, "15000000"},
		{"felt TTFT", func(*Call) {}, keyTTFTFelt, "21000000"},
		{"nothing due → no response TTFT", func(*Call) {}, keyTTFTResponse, none},
		{"the wait", func(*Call) {}, keyPartWait, "15000000"},
		{"not ended → no parts", func(c *Call) { c.Done = 0 }, keyPartWait, none},
		{"a median gap of 0 where gaps were measured", func(*Call) {}, "weir.gaps.p50_ns", "0"},
		{"no gaps → no median", func(c *Call) { c.Gaps.N = 0 }, "weir.gaps.p50_ns", none},
		{"two choices", func(c *Call) { c.Request.Choices = wire.N(2) }, keyChoiceCount, "2"},
		{"one choice goes without saying", func(c *Call) { c.Request.Choices = wire.N(1) }, keyChoiceCount, none},
		{"OpenAI's API", func(*Call) {}, keyOpenAIType, "chat_completions"},
		{"another's API", func(c *Call) { c.API = wire.Messages }, keyOpenAIType, none},
		{"a known 0", func(c *Call) { c.Usage.CacheRead = wire.N(0) }, "gen_ai.usage.cache_read.input_tokens", "0"},
		{"an unknown count", func(*Call) {}, "gen_ai.usage.cache_read.input_tokens", none},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			c := streamed()
			row.change(c)
			got := none
			for _, kv := range c.Attributes() {
				if kv.Key == row.key {
					got = kv.Value.String()
				}
			}
			if got != row.want {
				t.Errorf("%s is %s, want %s", row.key, got, row.want)
			}
		})
	}
}

func TestSpanNameAndStatus(t *testing.T) {
	c := &Call{Operation: wire.OpChat, Outcome: RateLimited, ErrorMessage: "slow down"}
	if got := c.SpanName(); got != "chat" {
		t.Errorf("name %q without a model, want chat", got)
	}
	c.Request.Model = "m"
	if got := c.SpanName(); got != "chat m" {
		t.Errorf("name %q, want chat m", got)
	}
	if code, text := c.SpanStatus(); code != codes.Error || text != "slow down" {
		t.Errorf("status %v %q", code, text)
	}
	c.Outcome = OK
	if code, _ := c.SpanStatus(); code != codes.Unset {
		t.Errorf("status %v of a call that is ok", code)
	}
}

func TestACallPrintsInALine(t *testing.T) {
	c := complete[0].script.run()
	c.Scenario, c.Request.Model = "short_chat", "m-1"
	if got, want := c.String(), "proxy short_chat chat m-1 ok 200 ttft 15ms took 63ms tokens 11→2"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// BenchmarkSpan is the whole way of a call through a span: a call as one is
// measured, and one of which everything is known.
func BenchmarkSpan(b *testing.B) {
	measured := complete[0].script.run()
	measured.Scenario, measured.Run, measured.Request.Model = "short_chat", "7f3a", "m-1"
	for name, c := range map[string]*Call{"measured": measured, "full": full(1)} {
		b.Run(name, func(b *testing.B) {
			tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(Ended(func(*Call) {}))).Tracer("test")
			b.ReportAllocs()
			for b.Loop() {
				c.End(c.Begin(context.Background(), tracer))
			}
		})
	}
}
