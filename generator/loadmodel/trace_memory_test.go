package loadmodel

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// grown is a file of so many lines that are written as they are read.
type grown struct {
	head, tail string
	n          int
	line       func(dst []byte, i int) []byte

	next int
	left []byte
}

func (l *grown) Read(p []byte) (int, error) {
	for len(l.left) == 0 {
		switch {
		case l.next > l.n:
			return 0, io.EOF
		case l.next == l.n:
			l.left = append(l.left, l.tail...)
		case l.next == 0:
			l.left = append(l.left, l.head...)
			fallthrough
		default:
			l.left = l.line(l.left, l.next)
		}
		l.next++
	}
	n := copy(p, l.left)
	l.left = l.left[:copy(l.left, l.left[n:])]
	return n, nil
}

// A reader holds no more after four times the rows, in which each session and
// each hash id is new and each length another: what it remembers of them was
// full before.
func TestReadersHoldNoMoreOfALongTrace(t *testing.T) {
	const keys = 1000
	const rows = 8 * keys
	for name, file := range map[string]grown{
		"azure": {head: "TIMESTAMP,ContextTokens,GeneratedTokens\n", line: func(dst []byte, i int) []byte {
			return fmt.Appendf(dst, "2023-11-%02d %02d:%02d:%02d.5,%d,7\n", 1+i/86400, i/3600%24, i/60%60, i%60, 100+i)
		}},
		"burstgpt": {head: "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type,Session ID\n", line: func(dst []byte, i int) []byte {
			return fmt.Appendf(dst, "%d,ChatGPT,%d,7,100,Conversation log,s%d\n", i, 100+i%1000, i)
		}},
		"mooncake": {line: func(dst []byte, i int) []byte {
			return fmt.Appendf(dst, `{"timestamp": %d, "input_length": 1500, "output_length": 7, "hash_ids": [%d, %d, %d], "session_id": "s%d"}`+"\n", 100*i, i<<30, i<<30+1<<20, i<<30+1<<25, i)
		}},
		"bailian": {line: func(dst []byte, i int) []byte {
			return fmt.Appendf(dst, `{"chat_id": %d, "parent_chat_id": -1, "timestamp": %d, "input_length": 30, "output_length": 7, "turn": 1, "hash_ids": [%d, %d]}`+"\n", i, i, i<<30, i<<30+1<<20)
		}},
		"otel": {head: `{"spans": [{}`, tail: "]}", line: func(dst []byte, i int) []byte {
			return fmt.Appendf(dst, `,{"span_id": "%d", "start_time": "%d", "attributes": {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 7, "gen_ai.conversation.id": "s%d"}}`, i, int64(1e18)+int64(i)*1e9, i)
		}},
		"weir": {line: func(dst []byte, i int) []byte {
			return fmt.Appendf(dst, `{"at_ns": %d000000, "input_tokens": %d, "output_tokens": 7, "session": "s%d", "turn": 1, "hash_ids": [%d]}`+"\n", i+1, 100+i, i, i<<30)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			file.n = 4*rows + 2*keys // at the end a reader lets go of all
			holdsNoMore(t, &Trace{Name: name, Format: name, keys: keys, spans: keys, BlockTokens: formats[name].blockTokens, source: func() io.Reader {
				again := file
				return &again
			}}, rows)
		})
	}
	// A client's rows are drawn, so many a second, from two short files.
	t.Run("servegen", func(t *testing.T) {
		path := write(t, "chunk-1-trace.csv", "0,90,1,Gamma,1,1\n600,90,1,Weibull,1,1\n")
		lengths := `{"0": {"input_tokens": "{50: 0.5, 60: 0.5}", "output_tokens": "{2: 1.0}"}}`
		if err := os.WriteFile(strings.TrimSuffix(path, clientTrace)+clientDataset, []byte(lengths), 0o600); err != nil {
			t.Fatal(err)
		}
		holdsNoMore(t, &Trace{Path: path, Name: "servegen", Format: "servegen", keys: keys}, rows)
	})
}

// holdsNoMore reads a trace as a survey does.
func holdsNoMore(t *testing.T, trace *Trace, rows int) {
	t.Helper()
	var after, later uint64
	n := 0
	survey := surveying{scenarios: map[string]bool{}}
	survey.held.most = trace.keys
	for row, err := range trace.chosen() {
		if err != nil {
			t.Fatal(err)
		}
		survey.add(&row)
		switch n++; n {
		case rows:
			after = heapHeld()
		case 4 * rows:
			later = heapHeld()
		}
	}
	t.Logf("%d bytes after %d rows, %d after %d", after, rows, later, 4*rows)
	// One that has read all ahead holds less by then.
	if after == 0 || later == 0 || later > after+after/10 || after > later+later/10 {
		t.Errorf("%d bytes after %d rows, %d after %d", after, rows, later, 4*rows)
	}
}

// heapHeld is what is held now.
func heapHeld() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What takes more room is remembered for less long.
func TestLargeSessionsAreForgottenSooner(t *testing.T) {
	var r recent[int, int]
	for i := range recentKeys {
		r.put(i, i, 9)
		r.put(i, i, 9) // again: it counts once
		if n := len(r.young) + len(r.old); n > 2*recentKeys/10 {
			t.Fatalf("%d keys are held", n)
		}
		if v, ok := r.get(max(i-recentKeys/10+1, 0)); !ok || v != max(i-recentKeys/10+1, 0) {
			t.Fatalf("after %d keys the one of %d steps ago is forgotten", i, recentKeys/10-1)
		}
	}
	if !r.forgot {
		t.Error("it does not say that it forgot")
	}
}

// Rows that wait to be spread over their minute are few where their prompts are long.
func TestRowsWithManyHashIDsDoNotWaitTogether(t *testing.T) {
	most := 0
	g := gathering{trace: &Trace{options: TraceOptions{Times: Resampled}}, rng: rand.New(rand.NewPCG(1, 2))}
	g.yield = func(Row, error) bool {
		most = max(most, g.ids)
		return true
	}
	ids := make([]int64, fullestIDs/4)
	for range 100 {
		g.add(&record{Row: Row{HashIDs: ids}})
	}
	if most == 0 || most > fullestIDs {
		t.Errorf("%d ids waited together, want %d at most", most, fullestIDs)
	}
}

// A long survey tells how far it is, and ends when it is told to.
func TestASurveyTellsHowFarItIsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []int
		trace := &Trace{Name: "slow", Format: "azure"}
		trace.options.OnSurvey = func(rows int) bool {
			told = append(told, rows)
			return len(told) < 3
		}
		trace.source = func() io.Reader {
			return &grown{head: "TIMESTAMP,ContextTokens,GeneratedTokens\n", n: 100_000, line: func(dst []byte, _ int) []byte {
				time.Sleep(time.Millisecond)
				return append(dst, "2023-11-01 10:00:00,5,7\n"...)
			}}
		}
		if _, err := trace.Survey(); !errors.Is(err, ErrStopped) || len(told) != 3 || told[0] != 1024 || told[2] != 3*1024 {
			t.Errorf("told %v, ended with %v", told, err)
		}
	})
}
