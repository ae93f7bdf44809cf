//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// collector is a real OpenTelemetry Collector, which examples/observability
// builds and configures.
type collector struct {
	bin        string
	folders    []string // of its files, one for each time that it was started
	grpc, http string   // where it listens
	process    *exec.Cmd
}

// newCollector finds the collector's binary, which .ci/test builds; without it,
// or with WEIR_TEST_COLLECTOR=off, the test is skipped.
func newCollector(t *testing.T) *collector {
	t.Helper()
	if os.Getenv("WEIR_TEST_COLLECTOR") == "off" {
		t.Skip("WEIR_TEST_COLLECTOR=off")
	}
	path, err := exec.Command("../../examples/observability/collector/build", "--path").Output()
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{bin: strings.TrimSpace(string(path)), grpc: freeAddress(t), http: freeAddress(t)}
	if _, err := os.Stat(c.bin); err != nil {
		t.Skip("the collector is not built: run examples/observability/collector/build")
	}
	return c
}

// start begins a collector, which listens when start returns.
func (c *collector) start(t *testing.T) {
	t.Helper()
	c.folders = append(c.folders, t.TempDir()) // a kill may cut a line in the last one
	c.process = exec.Command(c.bin, "--config", "../../examples/observability/collector/config.yaml")
	c.process.Env = append(os.Environ(), "COLLECTOR_GRPC="+c.grpc, "COLLECTOR_HTTP="+c.http, "COLLECTOR_FOLDER="+c.folders[len(c.folders)-1])
	var log bytes.Buffer // whole when the process has ended
	c.process.Stdout, c.process.Stderr = &log, &log
	if err := c.process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	process := c.process
	go func() { _ = process.Wait(); close(ended) }()
	t.Cleanup(func() { _ = process.Process.Kill(); <-ended })
	for range 1000 {
		if listens(c.grpc) && listens(c.http) {
			return
		}
		select {
		case <-ended:
			t.Fatalf("the collector ended:\n%s", log.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatal("the collector does not listen")
}

// end stops the collector by a signal, and waits for its end.
func (c *collector) end(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := c.process.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if errors.Is(c.process.Process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the collector does not end")
}

// await waits until some spans have come since it was started.
func (c *collector) await(t *testing.T, spans int) {
	t.Helper()
	path := filepath.Join(c.folders[len(c.folders)-1], "traces.jsonl")
	for range 3000 {
		if text, err := os.ReadFile(path); err == nil && bytes.Count(text, []byte(`"spanId"`)) >= spans {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("no spans come")
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func listens(address string) bool {
	c, err := net.Dial("tcp", address)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// landed is a span as the collector wrote it.
type landed struct {
	TraceID      string `json:"traceId"`
	SpanID       string `json:"spanId"`
	ParentSpanID string `json:"parentSpanId"`
	Name         string
	Kind         int
	Start        string `json:"startTimeUnixNano"`
	End          string `json:"endTimeUnixNano"`
	Attributes   keyValues
	TraceState   string
	Flags        int
	Events       []moment
	Status       struct {
		Code    int
		Message string
	}

	resource keyValues
}

// keyValues are OTLP's attributes; whole numbers are int64.
type keyValues map[string]any

func (kv *keyValues) UnmarshalJSON(b []byte) error {
	var list []struct {
		Key   string
		Value json.RawMessage
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*kv = keyValues{}
	for _, pair := range list {
		v, err := anyValue(pair.Value)
		if err != nil {
			return err
		}
		(*kv)[pair.Key] = v
	}
	return nil
}

func anyValue(b []byte) (any, error) {
	var v struct {
		StringValue *string
		IntValue    *string
		DoubleValue *float64
		BoolValue   *bool
		ArrayValue  *struct{ Values []json.RawMessage }
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	switch {
	case v.StringValue != nil:
		return *v.StringValue, nil
	case v.IntValue != nil:
		return strconv.ParseInt(*v.IntValue, 10, 64)
	case v.DoubleValue != nil:
		return *v.DoubleValue, nil
	case v.BoolValue != nil:
		return *v.BoolValue, nil
	case v.ArrayValue != nil:
		list := []any{}
		for _, e := range v.ArrayValue.Values {
			one, err := anyValue(e)
			if err != nil {
				return nil, err
			}
			list = append(list, one)
		}
		return list, nil
	}
	return nil, fmt.Errorf("a value of no type: %s", b)
}

// spans reads what came, each time that it was started: each span's versions,
// by its id.
func (c *collector) spans(t *testing.T) map[string][]landed {
	t.Helper()
	all := map[string][]landed{}
	for _, folder := range c.folders {
		for s := range readSpans(t, filepath.Join(folder, "traces.jsonl")) {
			all[s.SpanID] = append(all[s.SpanID], s)
		}
	}
	return all
}

func readSpans(t *testing.T, path string) iter.Seq[landed] {
	return func(yield func(landed) bool) {
		t.Helper()
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewReader(f)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return // the end, or a line that a kill has cut
			}
			var batch struct {
				ResourceSpans []struct {
					Resource   struct{ Attributes keyValues }
					ScopeSpans []struct{ Spans []landed }
				}
			}
			if err := json.Unmarshal(line, &batch); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			for _, rs := range batch.ResourceSpans {
				for _, ss := range rs.ScopeSpans {
					for _, s := range ss.Spans {
						s.resource = rs.Resource.Attributes
						if !yield(s) {
							return
						}
					}
				}
			}
		}
	}
}
