package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/generator"
	"weir/generator/loadmodel"
	"weir/store/report"
)

// Whatever is planned, nothing of it is wider than the screen and no heading
// touches the next; what matters most stands in the first table.
func TestAPlanFitsTheScreen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "zh.jsonl")
	write(t, file, `{"scenario_id": "短对话", "model": "通义千问-最新版本", "messages": [{"role": "user", "content": "你好"}], "max_tokens": 7, "at_ms": 0}
{"scenario_id": "长上下文检索增强生成与多轮工具调用智能体场景测试", "model": "gpt-5", "messages": [{"role": "user", "content": "hi"}], "at_ms": 2500, "api": "messages"}
{"scenario_id": "短对话", "model": "claude-sonnet-4-5-20250929-thinking", "messages": [{"role": "user", "content": "你好"}], "max_tokens": 7, "at_ms": 3000, "api": "responses"}
`)
	dataset, err := generator.OpenDataset(file, generator.DatasetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quickstart, err := loadmodel.Read(filepath.Join("..", "..", "examples", "quickstart", "load_model.json"))
	if err != nil {
		t.Fatal(err)
	}
	latency, err := generator.ParseLatency("ttft 500ms, tpot 20ms")
	if err != nil {
		t.Fatal(err)
	}
	for name, plan := range map[string]*generator.Plan{
		"quickstart": {Model: quickstart, Seed: 1},
		"zh":         {Model: &loadmodel.Model{}, Dataset: dataset, Seed: 1},
	} {
		o := generator.Foresee(t.Context(), plan, generator.OutlookOptions{Latency: latency, Prices: []generator.Price{{Model: "gpt*"}, {Model: "*", Input: 1, Output: 4}}})
		if o.Problem != nil {
			t.Fatal(o.Problem)
		}
		for columns := 50; columns <= 160; columns++ {
			var b strings.Builder
			outlookText(&b, o, report.Style{Width: columns})
			for line := range strings.Lines(b.String()) {
				if line = strings.TrimSuffix(line, "\n"); screenWidth.StringWidth(line) > columns {
					t.Errorf("%s at %d columns: %q", name, columns, line)
				}
				for _, title := range []string{"turns", "prompt tokens", "answer tokens"} {
					if at := strings.Index(line, title); strings.HasPrefix(line, "    ") && at >= 0 {
						if rest := line[at+len(title):]; rest != "" && !strings.HasPrefix(rest, "  ") {
							t.Errorf("%s at %d columns: headings touch: %q", name, columns, line)
						}
					}
				}
			}
			// All figures are somewhere: a heading for each.
			for head, n := range map[string]int{"requests  share": 1, "sessions": 1, "p95": 2, "p99": 2, "reuse": 1, "cost": 1} {
				found := 0
				for line := range strings.Lines(b.String()) {
					if strings.HasPrefix(line, "scenario ") {
						found += strings.Count(line, head)
					}
				}
				if found != n {
					t.Errorf("%s at %d columns: %d headings %q, want %d:\n%s", name, columns, found, head, n, b.String())
				}
			}
			if columns < 80 {
				continue
			}
			_, table, _ := strings.Cut(b.String(), "\nscenario ")
			if head, _, _ := strings.Cut(table, "\n"); !strings.Contains(head, "requests") || strings.Count(head, "p99") != 2 || !strings.Contains(head, "reuse") {
				t.Errorf("%s at %d columns: the first table has only %q", name, columns, head)
			}
		}
	}
}

// What an answer without a limit does to the calls in flight is not known.
func TestAPlanDoesNotTellWhatAnswersWithoutALimitHoldInFlight(t *testing.T) {
	const first, second = `{"scenario_id": "a", "model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 101, "at_ms": 0}`,
		`{"scenario_id": "a", "model": "m", "messages": [{"role": "user", "content": "hi"}], "at_ms": 1000%s}`
	for limit, want := range map[string]string{
		`, "max_tokens": 7`: "at ttft 500ms, tpot 20ms: 1.2 calls in flight on average, at most 2 at once, after 1s\n",
		"":                  "at ttft 500ms, tpot 20ms: at least 2 calls in flight at once, after 1s; how many more, and on average, is unknown, as 1 of 2 requests sets no limit to the answer\n",
	} {
		file := filepath.Join(t.TempDir(), "set.jsonl")
		write(t, file, first+"\n"+fmt.Sprintf(second, limit)+"\n")
		dataset, err := generator.OpenDataset(file, generator.DatasetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o := generator.Foresee(t.Context(), &generator.Plan{Model: &loadmodel.Model{}, Dataset: dataset, Seed: 1},
			generator.OutlookOptions{Latency: generator.Latency{TTFT: 500 * time.Millisecond, TPOT: 20 * time.Millisecond, Known: true}})
		var b strings.Builder
		outlookText(&b, o, report.Style{})
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %q in\n%s", want, &b)
		}
	}
}

func TestNumbersAreSaidWithTheirNouns(t *testing.T) {
	for n, want := range []string{
		"0 calls, 0 addresses, 0 of 0 calls have", "1 call, 1 address, 1 of 1 call has", "2 calls, 2 addresses, 2 of 2 calls have",
	} {
		if got := counted(n, "call") + ", " + counted(n, "address") + ", " + partly(n, n, "call", "has", "have"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
