package observability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A real collector, which begins after weir, gets spans, metrics and the log by
// both protocols, and each of the three leads to the others.
func TestCollectorGetsSpansMetricsAndTheLog(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) { allSignals(t, protocol) })
	}
}

// withCollector is a stand of which weir sends all it knows to a real collector,
// which writes it into a folder and listens at an address.
func withCollector(t *testing.T, protocol string) (s *stand, folder, listen string) {
	t.Helper()
	if os.Getenv("WEIR_TEST_COLLECTOR") == "off" {
		t.Skip("WEIR_TEST_COLLECTOR=off")
	}
	path, err := exec.Command("collector/build", "--path").Output()
	if err != nil {
		t.Fatal(err)
	}
	bin := strings.TrimSpace(string(path))
	if _, err := os.Stat(bin); err != nil {
		t.Skip("the collector is not built: run examples/observability/collector/build")
	}
	folder, listen = t.TempDir(), freeAddress(t)
	used, other := "COLLECTOR_GRPC=", "COLLECTOR_HTTP="
	if protocol != "grpc" {
		used, other = other, used
	}
	s = newStand(t, []string{
		"COLLECTOR_FOLDER=" + folder, used + listen, other + freeAddress(t),
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + listen, "OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol, "OTEL_METRIC_EXPORT_INTERVAL=500",
		"WEIR_SCRIPT=true", // prompts may say to the simulator what to answer
	}, "exemplar-storage", "-v")
	s.start(bin, "--config", "collector/config.yaml")
	s.until("the collector listens", func() error {
		c, err := net.Dial("tcp", listen)
		if err != nil {
			return err
		}
		return c.Close()
	})
	return s, folder, listen
}

func allSignals(t *testing.T, protocol string) {
	s, folder, _ := withCollector(t, protocol)
	s.load("3s")
	s.traced(t)
	s.until("all signals", func() error {
		spans, continued := map[string]bool{}, 0
		for _, b := range lines(filepath.Join(folder, "traces.jsonl")) {
			for _, rs := range b.ResourceSpans {
				for _, ss := range rs.ScopeSpans {
					for _, span := range ss.Spans {
						spans[span.SpanID] = true
						if span.TraceID == theirTrace && span.ParentSpanID == theirSpan && span.TraceState == theirState {
							continued++
						}
					}
				}
			}
		}
		logged, measured := 0, 0
		for _, b := range lines(filepath.Join(folder, "logs.jsonl")) {
			for _, rl := range b.ResourceLogs {
				for _, sl := range rl.ScopeLogs {
					for _, record := range sl.LogRecords {
						if spans[record.SpanID] && record.Body.StringValue == "a call ended" {
							logged++
						}
					}
				}
			}
		}
		for _, b := range lines(filepath.Join(folder, "metrics.jsonl")) {
			for _, rm := range b.ResourceMetrics {
				for _, sm := range rm.ScopeMetrics {
					for _, m := range sm.Metrics {
						for _, p := range m.Histogram.DataPoints {
							for _, e := range p.Exemplars {
								if m.Name == "gen_ai.client.inference.duration" && spans[e.SpanID] {
									measured++
								}
							}
						}
					}
				}
			}
		}
		if logged == 0 || measured == 0 || continued != 1 {
			return fmt.Errorf("of %d spans %d are named in the log, and %d by metrics; %d go on in the caller's trace", len(spans), logged, measured, continued)
		}
		return nil
	})
}

// The trace of a caller.
const (
	theirTrace = "0af7651916cd43dd8448eb211c80319c"
	theirSpan  = "b7ad6b7169203331"
	theirState = "vendor=x,other=y"
)

// traced sends a call that belongs to a trace of its caller's.
func (s *stand) traced(t *testing.T) {
	t.Helper()
	body := `{"model": "sim-small", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.proxy+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", "00-"+theirTrace+"-"+theirSpan+"-01")
	req.Header.Set("Tracestate", theirState)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", resp.Status, err)
	}
}

// batch is a line of a file of the collector's.
type batch struct {
	ResourceSpans []struct {
		ScopeSpans []struct{ Spans []linked }
	}
	ResourceLogs []struct {
		ScopeLogs []struct{ LogRecords []linked }
	}
	ResourceMetrics []struct {
		ScopeMetrics []struct {
			Metrics []struct {
				Name      string
				Histogram struct {
					DataPoints []struct{ Exemplars []linked }
				}
			}
		}
	}
}

// linked is what names a span: itself, a line of the log, or an exemplar.
type linked struct {
	SpanID                            string
	TraceID, ParentSpanID, TraceState string // of a span alone
	Body                              struct{ StringValue string }
}

// lines reads what is written of a file so far.
func lines(path string) (all []batch) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil // nothing has come yet
	}
	for line := range bytes.Lines(text) {
		var b batch
		if json.Unmarshal(line, &b) == nil { // else the rest of the last one is still to come
			all = append(all, b)
		}
	}
	return all
}
