package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestColumnsAlignByWhatTheyTakeOnAScreen(t *testing.T) {
	tab := &table{columns: []column{{head: "场景", left: true}, {head: "calls"}, {over: "ttft felt", head: "p50"}, {over: "ttft felt", head: "p95"}, {head: "说明", left: true}}}
	tab.add("短对话", "180", "412ms", "680ms", "ok")
	tab.add("long_context_rag", "1", "–", "", "")
	tab.add("多轮Agent工具调用", "20", "1ms", "2ms*", "慢")
	var b strings.Builder
	tab.text(&b, nil)
	want := strings.Join([]string{
		"                            ttft felt",
		"场景               calls    p50    p95   说明",
		"短对话               180  412ms  680ms   ok",
		"long_context_rag       1      –",
		"多轮Agent工具调用     20    1ms    2ms*  慢",
		"",
	}, "\n")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTextFromElsewhereCannotSteerTheTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[31mred":            "a[31mred",
		"two\nlines\tand a tab":   "two lines and a tab",
		"hidden\u202ereversed":    "hiddenreversed",
		"bell\x07 and c1 \u009b2": "bell and c1 2",
		"长上下文RAG → fine":          "长上下文RAG → fine",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMarkdownKeepsPipesInsideTheirCells(t *testing.T) {
	tab := &table{columns: []column{{head: "model", left: true}, {over: "ttft", head: "p50"}}}
	tab.add("a|b", "1ms*")
	var b strings.Builder
	tab.markdown(&b)
	want := "| model | ttft p50 |\n| --- | ---: |\n| a\\|b | 1ms\\* |\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
