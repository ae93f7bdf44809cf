package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAFoldedTableShowsTheLowestRanksFirst(t *testing.T) {
	columns := []Column{
		{Head: "scenario", Left: true}, {Head: "model", Left: true, Rank: 4}, {Head: "calls", Rank: 1},
		{Over: "prompt tokens", Head: "p50", Rank: 2}, {Over: "prompt tokens", Head: "max", Rank: 3}, {Over: "answers", Head: "p50", Rank: 2},
	}
	rows := [][]string{
		{"短对话", "甲, gpt-5-mini, claude-sonnet", "180", "12", "99", "7"},
		{"a_very_long_name_of_a_scenario", "b", "1", "3", "4", "5"},
	}
	for width, want := range map[int]string{
		// As it is, on no screen and on one that is wide enough.
		0:  "                                                                      prompt tokens  answers\nscenario                        model                          calls       p50  max  p50\n短对话                          甲, gpt-5-mini, claude-sonnet    180        12   99    7\na_very_long_name_of_a_scenario  b                                  1         3    4    5\n",
		36: "scenario    calls\n短对话        180\na_very_         1\nlong_name_\nof_a_\nscenario\n\n            prompt tokens  answers\nscenario         p50  max  p50\n短对话            12   99    7\na_very_            3    4    5\nlong_name_\nof_a_\nscenario\n\nscenario    model\n短对话      甲, gpt-5-mini,\n            claude-sonnet\na_very_     b\nlong_name_\nof_a_\nscenario\n",
	} {
		var b strings.Builder
		FoldedTable(&b, columns, rows, Style{Width: width})
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%d columns: %s", width, diff)
		}
	}
}

func TestTitlesOfColumnsDoNotTouch(t *testing.T) {
	columns := []Column{{Over: "prompt tokens", Head: "p50"}, {Over: "answer tokens", Head: "p50"}, {Over: "prefix", Head: "reuse"}}
	var b strings.Builder
	Table(&b, columns, [][]string{{"1", "2", "3%"}})
	if title, _, _ := strings.Cut(b.String(), "\n"); title != "prompt tokens  answer tokens  prefix" {
		t.Errorf("titles are %q", title)
	}
}

func TestAParagraphHangs(t *testing.T) {
	const text = "短对话: one two three\x1b[31m four five"
	for width, want := range map[int]string{
		0:  "! 短对话: one two three[31m four five\n",
		22: "! 短对话: one two\n  three[31m four five\n",
	} {
		var b strings.Builder
		Paragraph(&b, "! ", text, 2, Style{Width: width})
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%d columns: %s", width, diff)
		}
	}
}

func TestANameIsCutBehindASignThatPartsIt(t *testing.T) {
	for text, want := range map[string][]string{
		"azure_conversations_2024_week":   {"azure_conversations_", "2024_week"},
		"abcdefghijklmnopqrstuvwxyz01234": {"abcdefghijklmnopqrstuvwx", "yz01234"},
	} {
		if diff := cmp.Diff(want, wrap(text, 24)); diff != "" {
			t.Error(diff)
		}
	}
}
