package observability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A real collector, which begins after weir, gets spans, metrics and the log, and
// each of the three leads to the others.
func TestCollectorGetsSpansMetricsAndTheLog(t *testing.T) {
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
	folder, grpc := t.TempDir(), freeAddress(t)
	s := newStand(t, []string{
		"COLLECTOR_FOLDER=" + folder, "COLLECTOR_GRPC=" + grpc, "COLLECTOR_HTTP=" + freeAddress(t),
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + grpc, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_METRIC_EXPORT_INTERVAL=500",
	}, "exemplar-storage", "-v")
	s.start(bin, "--config", "collector/config.yaml")
	s.until("the collector listens", func() error {
		c, err := net.Dial("tcp", grpc)
		if err != nil {
			return err
		}
		return c.Close()
	})
	s.load("3s")
	s.until("all signals", func() error {
		spans := map[string]bool{}
		for _, b := range lines(filepath.Join(folder, "traces.jsonl")) {
			for _, rs := range b.ResourceSpans {
				for _, ss := range rs.ScopeSpans {
					for _, span := range ss.Spans {
						spans[span.SpanID] = true
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
		if logged == 0 || measured == 0 {
			return fmt.Errorf("of %d spans %d are named in the log, and %d by metrics", len(spans), logged, measured)
		}
		return nil
	})
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
	SpanID string
	Body   struct{ StringValue string }
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
