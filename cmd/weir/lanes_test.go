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
	five, left, rate, none := 5, -1234.4, 9.96, 0.0
	return lanesSaid{
		Schema: lanesSchema, At: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Listen: "http://127.0.0.1:8484", Limits: []string{"all rps=10"},
		Lanes: []shaper.LaneState{
			{Name: "all", Limit: "rps=10", PerS: &rate, InFlight: 12, Waiting: 340, OldestMS: 34_049, Full: "requests", Admitted: 1200, Refused: 8, Left: 2, EndpointRefused: 3},
			{Name: "scenario=长上下文检索", Limit: "tpm=5000 concurrency=5", PerS: &none, InFlight: 4, MostInFlight: &five, TokensLeft: &left, Full: "", Waiting: 1, OldestMS: 7.4},
			{Name: "endpoint a\tb\x1b[31m", HeldMS: 61_000, HoldReason: "requests used up"},
		},
	}
}

// A narrow terminal has what matters most, and a wide one all.
func TestLanesAreDrawnForPeople(t *testing.T) {
	for columns, want := range map[int]string{
		159: `                                                                                                                                                 calls
lane                   limit                   in flight  waiting  oldest  calls/s  bound by  held until  because           tokens left  admitted  refused  429
all                    rps=10                         12      340     34s     10.0  requests  –           –                           –      1200        8    3
scenario=长上下文检索  tpm=5000 concurrency=5     4 of 5        1     7ms      0.0  –         –           –                       -1234         0        0    0
endpoint a b[31m       –                               0        0       –        –  –         03:03:02    requests used up            –         0        0    0`,
		99: `lane                   in flight  waiting  oldest  calls/s  bound by  held until  because
all                           12      340     34s     10.0  requests  –           –
scenario=长上下文检索     4 of 5        1     7ms      0.0  –         –           –
endpoint a b[31m               0        0       –        –  –         03:03:02    requests used up`,
		79: `                                                                          calls
lane                   in flight  waiting  calls/s  bound by  held until  429
all                           12      340     10.0  requests  –             3
scenario=长上下文检索     4 of 5        1      0.0  –         –             0
endpoint a b[31m               0        0        –  –         03:03:02      0`,
		40: `lane        in flight  waiting  calls/s  bound by  held until
all                12      340     10.0  requests  –
scenario=…     4 of 5        1      0.0  –         –
endpoint …          0        0        –  –         03:03:02`,
	} {
		lines := laneLines(someLanes(), laneView{columns: columns, all: true})
		if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", columns, diff)
		}
		if got := widest(lines); columns >= 79 && got > columns {
			t.Errorf("%d columns: a line takes %d", columns, got)
		}
	}
}

func TestColumnsWithoutAnythingAreLeftOut(t *testing.T) {
	said := someLanes()
	said.Lanes = said.Lanes[:1]
	said.Lanes[0].Waiting, said.Lanes[0].Full = 0, ""
	const want = `                                                                            calls
lane  limit   in flight  waiting  calls/s  bound by  held until  admitted  refused  left  429
all   rps=10         12        0     10.0  –         –               1200        8     2    3`
	if diff := cmp.Diff(want, strings.Join(laneLines(said, laneView{columns: 200}), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lines := laneLines(lanesSaid{}, laneView{columns: 200}); len(lines) > 0 {
		t.Errorf("without a lane: %q", lines)
	}
}

// Of the lanes that come with their calls those in which nothing goes on are
// counted; what a rule names is always shown.
func TestIdleLanesAreFolded(t *testing.T) {
	session := shaper.LaneState{Name: "session=7f3a", Each: true, Limit: "concurrency=2"}
	flying, waiting, gone, rate := session, session, session, 0.1
	flying.InFlight, waiting.Waiting, gone.PerS = 1, 1, &rate
	for _, c := range []struct {
		sentence string
		lane     shaper.LaneState
		folded   bool
	}{
		{"of all calls", shaper.LaneState{Name: "all", Limit: "rps=10"}, false},
		{"a named one", shaper.LaneState{Name: "scenario=rag", Limit: "concurrency=2"}, false},
		{"a session's", session, true},
		{"a session's with a limit of its own", shaper.LaneState{Name: "session=7f3a", Limit: "concurrency=2"}, false},
		{"an endpoint's", shaper.LaneState{Name: "endpoint main m"}, true},
		{"an endpoint's that is held", shaper.LaneState{Name: "endpoint main m", HeldMS: 5}, false},
		{"with a call in flight", flying, false},
		{"with one that waits", waiting, false},
		{"from which one went just now", gone, true},
	} {
		said := lanesSaid{Lanes: []shaper.LaneState{c.lane, c.lane}}
		lines := laneLines(said, laneView{columns: 79})
		if folded := strings.Join(lines, "\n") == "+ 2 idle: weir lanes --all"; folded != c.folded {
			t.Errorf("%s: folded is %t:\n%s", c.sentence, folded, strings.Join(lines, "\n"))
		}
		if all := strings.Join(laneLines(said, laneView{columns: 79, all: true}), "\n"); strings.Count(all, "\n"+c.lane.Name) != 2 {
			t.Errorf("%s: all of two lanes are\n%s", c.sentence, all)
		}
	}
}

func TestLanesAreWrittenForAPipe(t *testing.T) {
	const want = "2026-05-04T03:02:01.000Z\tall\trps=10\t12\t\t340\t34049.000\t9.960\trequests\t\t\t\t1200\t8\t2\t3\tfalse\n" +
		"2026-05-04T03:02:01.000Z\tscenario=长上下文检索\ttpm=5000 concurrency=5\t4\t5\t1\t7.400\t0.000\t\t\t\t-1234.400\t0\t0\t0\t0\tfalse\n" +
		"2026-05-04T03:02:01.000Z\tendpoint a b[31m\t\t0\t\t0\t\t\t\t61000.000\trequests used up\t\t0\t0\t0\t0\tfalse\n"
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

// Where the screen is too low for all lanes, those that are not to be missed
// stay.
func TestALowScreenShowsTheLanesThatMatter(t *testing.T) {
	session := func(name string, flying, waiting int) shaper.LaneState {
		return shaper.LaneState{Name: "session=" + name, Each: true, Limit: "concurrency=2", InFlight: flying, Waiting: waiting}
	}
	said := lanesSaid{Lanes: []shaper.LaneState{
		session("a", 1, 0), session("b", 2, 4), session("c", 1, 0), session("d", 0, 0), session("e", 2, 1),
		{Name: "scenario=rag", Limit: "rps=1"}, {Name: "endpoint main", InFlight: 6}, {Name: "endpoint other", HeldMS: 5},
	}}
	for lines, want := range map[int]string{
		0:  "scenario=rag, endpoint main, endpoint other, session=a, session=b, session=c, session=e, + 1 idle: weir lanes --all",
		10: "scenario=rag, endpoint main, endpoint other, session=a, session=b, session=c, session=e, + 1 idle: weir lanes --all",
		8:  "scenario=rag, endpoint main, endpoint other, session=b, session=e, + 2 more, 1 idle: weir lanes --all",
		7:  "scenario=rag, endpoint other, session=b, session=e, + 3 more, 1 idle: weir lanes --all",
		2:  "scenario=rag, + 6 more, 1 idle: weir lanes --all",
	} {
		var got []string
		for _, line := range laneLines(said, laneView{columns: 120, lines: lines}) {
			if name, _, _ := strings.Cut(line, "  "); name != "" && name != "lane" {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%d lines (-want +got):\n%s", lines, diff)
		}
	}
}
