//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// moment is an event of a span.
type moment struct {
	Name string
	Time string `json:"timeUnixNano"`
}

// derive adds what no column holds to the attributes of a row, by the rules of
// the account, and gives its events.
func derive(t *testing.T, start int64, attributes map[string]any) (events []moment) {
	t.Helper()
	at := func(name string) (time.Duration, bool) {
		n, ok := attributes["weir.instant."+name+"_ns"].(int64)
		return time.Duration(n), ok
	}
	// The end of the request, at the latest the first sign of an answer.
	sent, out := at("sent")
	for _, sign := range []string{"headers", "first_byte.received", "first_token.received"} {
		if d, ok := at(sign); ok && (!out || d < sent) {
			sent, out = d, true
		}
	}
	if first, ok := at("first_event.received"); ok && out && attributes["weir.response.streamed"] == true {
		attributes["gen_ai.response.time_to_first_chunk"] = (first - sent).Seconds()
	}
	if n, there := attributes["weir.request.choices"]; there && n != int64(1) {
		attributes["gen_ai.request.choice.count"] = n
	}
	switch attributes["weir.api"] {
	case "chat":
		attributes["openai.api.type"] = "chat_completions"
	case "responses":
		attributes["openai.api.type"] = "responses"
	}

	done, ended := at("done")
	if !ended {
		t.Fatal("a row has no end")
	}
	steps := []struct {
		name, part, event string
		at                time.Duration
		reached           bool
	}{
		{name: "body", part: "read", event: "weir.queue"}, {name: "admitted", part: "queue", event: "weir.connect"}, {name: "again", part: "attempts", event: "weir.connect_again"},
		{name: "connected", part: "connect", event: "weir.send"}, {part: "send", event: "weir.wait", at: sent, reached: out},
		{name: "first_token.received", part: "wait", event: "weir.first_token"}, {name: "last_token.received", part: "generate", event: "weir.last_token"},
	}
	for i := range steps {
		s := &steps[i]
		if s.name != "" {
			s.at, s.reached = at(s.name)
		}
		if s.reached {
			events = append(events, moment{s.event, strconv.FormatInt(start+int64(s.at), 10)})
		}
		if s.name == "again" && !s.reached {
			s.at, s.reached = steps[i-1].at, steps[i-1].reached
		}
	}
	next := done
	ends := make([]time.Duration, len(steps))
	for i, s := range slices.Backward(steps) {
		if s.reached && s.at < next {
			next = max(s.at, 0)
		}
		ends[i] = next
	}
	var before time.Duration
	for i, s := range steps {
		if part := ends[i] - before; s.part != "attempts" || part > 0 {
			attributes["weir.part."+s.part+"_ns"] = int64(part)
		}
		before = ends[i]
	}
	attributes["weir.part.tail_ns"] = int64(done - before)
	return events
}

// measured is the last count of a histogram's series, summed over those with an
// attribute.
func (c *collector) measured(t *testing.T, name, key, value string) (n int64) {
	t.Helper()
	last := map[string]int64{}
	for _, folder := range c.folders {
		text, err := os.ReadFile(filepath.Join(folder, "metrics.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var batch struct {
				ResourceMetrics []struct {
					ScopeMetrics []struct {
						Metrics []struct {
							Name      string
							Histogram struct {
								DataPoints []struct {
									Attributes keyValues
									Count      string
								}
							}
						}
					}
				}
			}
			if err := json.Unmarshal([]byte(line), &batch); err != nil {
				t.Fatal(err)
			}
			for _, rm := range batch.ResourceMetrics {
				for _, sm := range rm.ScopeMetrics {
					for _, m := range sm.Metrics {
						for _, p := range m.Histogram.DataPoints {
							if m.Name != name || p.Attributes[key] != value {
								continue
							}
							series, err := json.Marshal(p.Attributes)
							if err != nil {
								t.Fatal(err)
							}
							if last[string(series)], err = strconv.ParseInt(p.Count, 10, 64); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
			}
		}
	}
	for _, count := range last {
		n += count
	}
	return n
}
