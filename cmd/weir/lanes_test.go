package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/shaper"
)

// someLanes are lanes in all states.
func someLanes() lanesSaid {
	five, left := 5, -1234.4
	return lanesSaid{
		Schema: lanesSchema, At: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Listen: "http://127.0.0.1:8484", Limits: []string{"all rps=10"},
		Lanes: []shaper.LaneState{
			{Name: "all", Limit: "rps=10", PerS: 9.96, InFlight: 12, Waiting: 340, OldestMS: 34_049, Full: "requests", Admitted: 1200, Refused: 8, Left: 2, EndpointRefused: 3},
			{Name: "scenario=长上下文检索", Limit: "tpm=5000 concurrency=5", InFlight: 4, MostInFlight: &five, TokensLeft: &left, Full: "", Waiting: 1, OldestMS: 7.4},
			{Name: "endpoint a\tb\x1b[31m", HeldMS: 61_000, HoldReason: "requests used up"},
		},
	}
}

func TestLanesAreDrawnForPeople(t *testing.T) {
	const want = `                                                                                                                                                 calls
lane                   limit                   in flight  waiting  oldest  admitted/s  waits for  held                   tokens left  admitted  refused  left  429
all                    rps=10                         12      340     34s        10.0  requests   –                                –      1200        8     2    3
scenario=长上下文检索  tpm=5000 concurrency=5     4 of 5        1     7ms         0.0  –          –                            -1234         0        0     0    0
endpoint a b[31m       –                               0        0       –         0.0  –          1m1s requests used up            –         0        0     0    0`
	if diff := cmp.Diff(want, strings.Join(laneLines(someLanes()), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestColumnsWithoutAnythingAreLeftOut(t *testing.T) {
	said := someLanes()
	said.Lanes = said.Lanes[:1]
	said.Lanes[0].Waiting, said.Lanes[0].Full = 0, ""
	const want = `                                                         calls
lane  limit   in flight  waiting  admitted/s  admitted  refused  left  429
all   rps=10         12        0        10.0      1200        8     2    3`
	if diff := cmp.Diff(want, strings.Join(laneLines(said), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lines := laneLines(lanesSaid{}); len(lines) > 0 {
		t.Errorf("without a lane: %q", lines)
	}
}

func TestLanesAreWrittenForAPipe(t *testing.T) {
	const want = "2026-05-04T03:02:01.000Z\tall\trps=10\t12\t\t340\t34049.000\t9.960\trequests\t\t\t\t1200\t8\t2\t3\n" +
		"2026-05-04T03:02:01.000Z\tscenario=长上下文检索\ttpm=5000 concurrency=5\t4\t5\t1\t7.400\t0.000\t\t\t\t-1234.400\t0\t0\t0\t0\n" +
		"2026-05-04T03:02:01.000Z\tendpoint a b[31m\t\t0\t\t0\t\t0.000\t\t61000.000\trequests used up\t\t0\t0\t0\t0\n"
	var got bytes.Buffer
	laneRows(&got, someLanes())
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for line := range strings.Lines(got.String()) {
		if n := strings.Count(line, "\t"); n != strings.Count(lanesHead, "\t") {
			t.Errorf("%d tabs in %q, not as in the head", n, line)
		}
	}
}

// The contract names each key, and no other.
func TestLanesJSONIsItsContract(t *testing.T) {
	text, err := os.ReadFile("../../shaper/LANES.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "`"); ok && strings.HasPrefix(line, "| `") {
			documented[name] = true
		}
	}
	var b bytes.Buffer
	if err := writeJSON(&b, someLanes(), true); err != nil {
		t.Fatal(err)
	}
	if strings.Count(b.String(), "\n") != 1 {
		t.Errorf("it is no single line: %q", b.String())
	}
	var said map[string]any
	if err := json.Unmarshal(b.Bytes(), &said); err != nil {
		t.Fatal(err)
	}
	written := map[string]bool{}
	for key := range said {
		written[key] = true
	}
	for key := range said["lanes"].([]any)[0].(map[string]any) {
		written[key] = true
	}
	if diff := cmp.Diff(documented, written); diff != "" {
		t.Errorf("(-documented +written):\n%s", diff)
	}
}

func TestATableIsCutAtTheScreensHeight(t *testing.T) {
	lines := []string{"1", "2", "3", "4", "5"}
	for most, want := range map[int]string{5: "1 2 3 4 5", 9: "1 2 3 4 5", 4: "1 2 3 … and 2 more; weir lanes shows all", 0: "1 2 3 4 5"} {
		if got := strings.Join(atMost(lines, most), " "); got != want {
			t.Errorf("%d lines: %q, want %q", most, got, want)
		}
	}
}
