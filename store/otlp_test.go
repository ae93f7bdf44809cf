package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

func TestOneCollectorHasOneName(t *testing.T) {
	for _, row := range []struct {
		sentence string
		env      map[string]string
		want     string
	}{
		{"as it is", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, "http://collector:4318"},
		{"a slash behind it", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://Collector:4318/"}, "http://collector:4318"},
		{"the signal's own", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, "http://collector:4318"},
		{"a base path", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/base/"}, "http://collector:4318/base"},
		{"the signal's own behind a base path", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/base/v1/traces"}, "http://collector:4318/base"},
		{"the signal's own without its path → posted to the root", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318"}, "http://collector:4318/"},
		{"gRPC has no path", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4317/v1/traces", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http://collector:4317"},
		{"nothing secret", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://me:secret@collector:4318/?api-key=secret#secret"}, "http://collector:4318"},
		{"asked for without an address", map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, "http://localhost:4318"},
		{"asked for without an address, by gRPC", map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "http://localhost:4317"},
	} {
		at, err := otlpEndpoint(env(row.env), "TRACES")
		if err != nil || at == nil || at.target != row.want {
			t.Errorf("%s: %+v, %v; want %s", row.sentence, at, err, row.want)
			continue
		}
		if asked := row.env["OTEL_TRACES_EXPORTER"] != ""; asked != (at.unnamed != "") {
			t.Errorf("%s: the SDK is told of the address %q", row.sentence, at.unnamed)
		}
	}
	// The other signals are not asked for by it.
	if at, err := otlpEndpoint(env(map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}), "METRICS"); at != nil || err != nil {
		t.Errorf("%+v, %v", at, err)
	}
}

// The SDK says on stderr that it goes on without them, or nothing.
func TestVariablesThatCannotBeFollowedAreRefused(t *testing.T) {
	noPEM := filepath.Join(t.TempDir(), "no.pem")
	if err := os.WriteFile(noPEM, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, values := range map[string][]string{
		"OTEL_EXPORTER_OTLP_HEADERS":            {"bad header", "a b=secret", "a=1,secret", "a=%zz"},
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS":     {"bad header"},
		"OTEL_EXPORTER_OTLP_CERTIFICATE":        {"/nofile", noPEM},
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": {"/nofile"},
		"OTEL_EXPORTER_OTLP_CLIENT_KEY":         {"/nofile"},
		"OTEL_EXPORTER_OTLP_COMPRESSION":        {"zstd"},
		"OTEL_EXPORTER_OTLP_TIMEOUT":            {"10s", "-1"},
		"OTEL_EXPORTER_OTLP_PROTOCOL":           {"http/json"},
		"OTEL_TRACES_EXPORTER":                  {"zipkin", "jaeger"},
		"OTEL_TRACES_SAMPLER":                   {"jaeger_remote", "often"},
		"OTEL_RESOURCE_ATTRIBUTES":              {"garbage"},
	} {
		for _, value := range values {
			_, err := NewTracing(context.Background(), openAt(t, filepath.Join(t.TempDir(), "weir.db")), TracingOptions{Env: env(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", name: value})})
			var bad BadVariable
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "want") || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
	}
	for _, value := range []string{"abc", "0"} {
		if _, err := otlpEndpoint(env(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_METRIC_EXPORT_INTERVAL": value}), "METRICS"); err == nil {
			t.Errorf("OTEL_METRIC_EXPORT_INTERVAL=%s is followed", value)
		}
	}
	good := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Basic%20eA==, x-b = 2",
		"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_TIMEOUT": "500", "OTEL_TRACES_EXPORTER": "otlp", "OTEL_METRIC_EXPORT_INTERVAL": "1000"}
	if at, err := otlpEndpoint(env(good), "METRICS"); at == nil || err != nil {
		t.Errorf("%v, %v", at, err)
	}
}

// The database holds all calls, whatever is sampled.
func TestASamplerSaysWhatIsSent(t *testing.T) {
	sampled := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true})
	for _, row := range []struct {
		sampler, arg  string
		alone, inside int // of 64 calls, how many are sent; -1 for some
	}{
		{"", "", 64, 64}, {"always_on", "", 64, 64}, {"always_off", "", 0, 0}, {"traceidratio", "0", 0, 0}, {"traceidratio", "0.5", -1, 64},
		{"parentbased_always_off", "", 0, 64}, {"parentbased_traceidratio", "0.5", -1, 64}, {"parentbased_always_on", "", 64, 64},
	} {
		values := map[string]string{"OTEL_TRACES_SAMPLER": row.sampler, "OTEL_TRACES_SAMPLER_ARG": row.arg}
		db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), values)
		count := func(ctx context.Context) (n int) {
			for i := range 64 {
				if record(tr, ctx, example(i)).IsSampled() {
					n++
				}
			}
			return n
		}
		alone, inside := count(context.Background()), count(trace.ContextWithRemoteSpanContext(context.Background(), sampled))
		fits := func(n, want int) bool { return n == want || want < 0 && n > 0 && n < 64 }
		if !fits(alone, row.alone) || !fits(inside, row.inside) {
			t.Errorf("%s %s: %d and %d of 64 would be sent", row.sampler, row.arg, alone, inside)
		}
		stop()
		if n := len(all(t, db, "all")); n != 128 {
			t.Errorf("%s: %d calls are recorded, want 128", row.sampler, n)
		}
	}
}

// Whoever sends spans later sends them as those of the process that made them.
func TestSpansKeepTheResourceOfTheirWriter(t *testing.T) {
	c := &collector{}
	url, _ := listenOn(t, c, "127.0.0.1:0")
	path := filepath.Join(t.TempDir(), "weir.db")
	variables := setVariables(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_SERVICE_NAME": "mine", "OTEL_RESOURCE_ATTRIBUTES": "team=a,deployment.environment.name=prod,host.name=there"})
	named := map[string]string{}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"} {
		named[name], _ = variables(name)
	}
	_, tr, stop := tracing(t, path, named)
	record(tr, context.Background(), example(1))
	await(t, "the span to come", func() bool { return len(c.ids()) == 1 })
	stop()
	merged := filepath.Join(t.TempDir(), "merged.db")
	if _, err := Merge(context.Background(), merged, []string{path}, nil); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_SERVICE_NAME", "")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "")
	everything, _ := ParseSelection([]string{"all"})
	for i, at := range []string{path, merged} {
		sent, err := Resend(context.Background(), openAt(t, at), &everything, ResendOptions{TracingOptions: TracingOptions{Version: "later", Env: env(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url})}})
		if err != nil || sent.Sent != 1 || len(c.resources) != 2+i {
			t.Fatalf("%+v, %v", sent, err)
		}
		if first, now := c.resources[0], c.resources[1+i]; first != now || !strings.Contains(first, "team=a") || !strings.Contains(first, "service.name=mine") || !strings.Contains(first, "host.name=there") {
			t.Errorf("sent at once of\n%s\nand later of\n%s", first, now)
		}
	}
}

// A collector that has moved gets what waited for it where it was, once, and the
// counts stay true.
func TestWhatWaitsForAnotherCollectorCanBeAdopted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	old, now := &collector{}, &collector{}
	was, stopOld := listenOn(t, old, "127.0.0.1:0")
	_, tr, stop := tracing(t, path, setEnv(t, was))
	record(tr, context.Background(), example(1))
	await(t, "the span to come", func() bool { return len(old.ids()) == 1 })
	stopOld()
	record(tr, context.Background(), example(2))
	record(tr, context.Background(), example(3))
	await(t, "the outbox to fail", func() bool { return tr.Outbox.Failed() > 0 })
	stop()
	is, _ := listenOn(t, now, "127.0.0.1:0")
	db, o := openAt(t, path), ResendOptions{TracingOptions: TracingOptions{Env: env(setEnv(t, is))}}
	if sent, err := Resend(context.Background(), db, nil, o); err != nil || sent.Sent != 0 || sent.Target != is {
		t.Errorf("unasked: %+v, %v", sent, err)
	}
	o.Adopt = was
	if sent, err := Resend(context.Background(), db, nil, o); err != nil || sent.Sent != 2 {
		t.Errorf("%+v, %v", sent, err)
	}
	all, err := db.Deliveries(context.Background())
	if err != nil || len(all) != 2 || len(now.ids()) != 2 {
		t.Fatalf("%+v, %v, %d came", all, err, len(now.ids()))
	}
	for _, d := range all {
		if want := map[string]int64{was: 1, is: 2}[d.Target]; d.Sent != want || d.Waiting != 0 {
			t.Errorf("%s was sent %d and waits for %d", d.Target, d.Sent, d.Waiting)
		}
	}
	if _, err := Resend(context.Background(), db, nil, o); err == nil || !strings.Contains(err.Error(), "no spans of processes") {
		t.Errorf("a second time: %v", err)
	}
}
