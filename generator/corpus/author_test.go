package corpus

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

var (
	kinds     = []Kind{Prose, RAG, Agent, Code}
	languages = []Language{English, Chinese, Mixed}
)

var prompts = flag.Int("prompts", 60, "prompts of each kind and language that TestPromptsHaveTheTokensWanted counts")

// Sizes are drawn from 50 to 100,000 tokens, as many of each order of magnitude.
func TestPromptsHaveTheTokensWanted(t *testing.T) {
	for _, kind := range kinds {
		for _, lang := range languages {
			t.Run(string(kind)+"-"+string(lang), func(t *testing.T) {
				t.Parallel()
				sizes := rand.New(rand.NewPCG(50, 100_000))
				worst := 0
				for i := range *prompts {
					want := int(50 * math.Pow(2000, sizes.Float64()))
					tok := o200k()
					if i%4 == 3 {
						tok = cl100k()
					}
					p := NewAuthor(tok, lang, 7, uint64(i)).Prompt(kind, want, 0)
					got := p.Count(tok)
					miss := max(got-want, want-got)
					worst = max(worst, miss)
					if miss > max(4, want/100) {
						t.Errorf("%s: want %d tokens, got %d", tok.Name(), want, got)
					}
				}
				t.Logf("%d prompts, at most %d tokens off", *prompts, worst)
			})
		}
	}
}

func TestTextsHaveExactlyTheTokensWanted(t *testing.T) {
	tok := o200k()
	for _, kind := range kinds {
		for _, lang := range languages {
			a := NewAuthor(tok, lang, 1, 2)
			for n := 1; n < 400; n += 1 + n/9 {
				if got := tok.Count(a.Text(kind, n)); got != n {
					t.Errorf("text %s, %s: want %d tokens, got %d", kind, lang, n, got)
				}
				if got := tok.Count(a.FollowUp(kind, n)); got != n {
					t.Errorf("follow-up %s, %s: want %d tokens, got %d", kind, lang, n, got)
				}
				if got := tok.Count(a.ToolResult(Call{Name: pick(a.rng, toolSketches).name}, n)); got != n {
					t.Errorf("tool result, %s: want %d tokens, got %d", lang, n, got)
				}
			}
		}
	}
}

func TestFlattenedHistoriesHaveTheTokensWanted(t *testing.T) {
	tok := o200k()
	for _, kind := range kinds {
		for _, n := range []int{600, 3000, 12_000} {
			p := NewAuthor(tok, English, 3, uint64(n)).History(kind, n, 0, 5)
			if got := p.Count(tok); got < n*98/100 || got > n*102/100 {
				t.Errorf("%s of %d tokens in 5 turns has %d", kind, n, got)
			}
			users := 0
			for _, m := range p.Messages {
				if m.Role == User {
					users++
				}
			}
			if users != 5 {
				t.Errorf("%s of %d tokens: want 5 turns of the user, got %d", kind, n, users)
			}
		}
	}
}

func TestEqualSeedsWriteEqualPromptsAndOthersBeginDifferently(t *testing.T) {
	tok := o200k()
	for _, kind := range kinds {
		for _, lang := range languages {
			write := func(seed uint64) Prompt { return NewAuthor(tok, lang, 99, seed).Prompt(kind, 900, 0) }
			if diff := cmp.Diff(write(5), write(5)); diff != "" {
				t.Errorf("%s, %s: one seed, two prompts:\n%s", kind, lang, diff)
			}
			seen := map[string]uint64{}
			for seed := range uint64(400) {
				text := beginning(write(seed))
				start, _ := tok.Cut(text, 8)
				if other, again := seen[start]; again {
					t.Fatalf("%s, %s: seeds %d and %d both begin with %q", kind, lang, other, seed, start)
				}
				seen[start] = seed
			}
		}
	}
}

// beginning is the first text of a prompt as a model reads it.
func beginning(p Prompt) string {
	if p.System != "" {
		return p.System
	}
	return p.Messages[0].Text
}

func TestAgentHistoriesAreWhole(t *testing.T) {
	p := NewAuthor(o200k(), English, 4, 4).Prompt(Agent, 6000, 0)
	if p.System == "" || len(p.Tools) < 3 {
		t.Fatalf("want a system prompt and tools, got %d tools", len(p.Tools))
	}
	names := map[string]bool{}
	for _, d := range p.Tools {
		var schema struct{ Type string }
		if err := json.Unmarshal(d.Parameters, &schema); err != nil || schema.Type != "object" {
			t.Errorf("the schema of %s: %v: %s", d.Name, err, d.Parameters)
		}
		if names[d.Name] {
			t.Errorf("tool %s is offered twice", d.Name)
		}
		names[d.Name] = true
	}
	open := map[string]bool{}
	calls := 0
	for _, m := range p.Messages {
		for _, c := range m.Calls {
			calls++
			if open[c.ID] || !names[c.Name] || !json.Valid([]byte(c.Arguments)) {
				t.Errorf("call %+v: want a new id, a known tool and JSON", c)
			}
			open[c.ID] = true
		}
		if m.Role == Result {
			if !open[m.CallID] {
				t.Errorf("a result answers %q, which was not called", m.CallID)
			}
			delete(open, m.CallID)
		}
	}
	if calls < 3 || len(open) > 0 {
		t.Errorf("%d calls, unanswered %v: want several, all answered", calls, open)
	}
}

func TestToolsAsManyAsWanted(t *testing.T) {
	for _, n := range []int{1, 7, 40} {
		p := NewAuthor(o200k(), English, 1, 1).Prompt(Prose, 8000, n)
		if len(p.Tools) != n {
			t.Errorf("want %d tools, got %d", n, len(p.Tools))
		}
		if got := p.Count(o200k()); got < 7840 || got > 8160 {
			t.Errorf("with %d tools: want 8000 tokens, got %d", n, got)
		}
	}
}

// The bounds are about those of real texts. Measured with zlib on 30 KB of source
// files, one after another: Go's standard library 2.9 to 3.5 times, Python's 3.3 to
// 4.6; English read-mes and manuals 2.6 to 4.1. With zstd at its best on
// 300 KB, where repetition far apart shows: Go 3.4 to 4.3, Python 3.9 to 4.7 (with xz 3.8 to 5.3).
func TestTextsCompressLikeRealOnes(t *testing.T) {
	far, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		for _, lang := range languages {
			for seed := range uint64(4) {
				text := NewAuthor(o200k(), lang, 8, seed).Text(kind, 100_000)[:300_000]
				var packed bytes.Buffer
				z := zlib.NewWriter(&packed)
				fmt.Fprint(z, text[:30_000])
				z.Close()
				low := 2.0
				if kind == Code {
					low = 2.3
				}
				if ratio := 30_000 / float64(packed.Len()); ratio < low || ratio > 3.6 {
					t.Errorf("%s, %s, seed %d: 30 KB compress by %.2f, real ones by %.1f to 3.6", kind, lang, seed, ratio, low)
				}
				if ratio := 300_000 / float64(len(far.EncodeAll([]byte(text), nil))); ratio < 2.5 || ratio > 4.3 {
					t.Errorf("%s, %s, seed %d: 300 KB compress by %.2f, real ones by 2.5 to 4.3", kind, lang, seed, ratio)
				}
			}
		}
	}
}

// Real source files of Go's standard library have 3.2 to 3.5 bytes a token by
// o200k, those of Python's 3.8 to 4.3.
func TestSourceHasTheTokensOfRealSource(t *testing.T) {
	for _, row := range []struct {
		name string
		in   *grammar
		real float64 // bytes a token
	}{{"Go", golang, 3.3}, {"Python", python, 4.1}} {
		a := NewAuthor(o200k(), English, 8, 8)
		text := a.compose("", a.files([]*grammar{row.in}), 50_000, "")
		if got := float64(len(text)) / 50_000; got < 0.8*row.real || got > 1.2*row.real {
			t.Errorf("%s has %.2f bytes a token, real source %.2f", row.name, got, row.real)
		}
	}
}

func TestTheLanguageIsTheOneWanted(t *testing.T) {
	for lang, want := range map[Language][2]float64{English: {0, 0.01}, Chinese: {0.7, 1}, Mixed: {0.1, 0.6}} {
		text := NewAuthor(o200k(), lang, 2, 2).Text(Prose, 4000)
		han, all := 0, 0
		for _, r := range text {
			all++
			if unicode.Is(unicode.Han, r) {
				han++
			}
		}
		if share := float64(han) / float64(all); share < want[0] || share > want[1] {
			t.Errorf("%s: %.2f of the characters are Chinese, want %v", lang, share, want)
		}
		if strings.Contains(text, "?{") || strings.Contains(text, "{") {
			t.Errorf("%s: a hole was left open", lang)
		}
	}
}

func BenchmarkPrompt(b *testing.B) {
	for _, kind := range kinds {
		for _, lang := range languages {
			b.Run(string(kind)+"-"+string(lang), func(b *testing.B) {
				seed := uint64(0)
				for b.Loop() {
					seed++
					NewAuthor(o200k(), lang, 1, seed).Prompt(kind, 4000, 0)
				}
				b.ReportMetric(4000*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mtokens/s")
			})
		}
	}
}

// The function that a prompt of code asks about stands in its code.
func TestCodeAsksForAFunctionOfItsFile(t *testing.T) {
	asks := regexp.MustCompile(`(?:请找出函数 |Find the fault in )(\S+)(?: 中的错误|, explain it)`)
	for _, lang := range languages {
		for _, n := range []int{5, 80, 150, 1500} {
			named := 0
			for i := range uint64(100) {
				text := NewAuthor(o200k(), lang, 1, i).Prompt(Code, n, 0).Messages[0].Text
				m := asks.FindStringSubmatch(text)
				if m == nil {
					continue
				}
				if named++; strings.Count(text, m[1]) < 2 {
					t.Errorf("%s, %d tokens: asks for %s, which is not there:\n%s", lang, n, m[1], text)
				}
			}
			if n == 1500 && named < 50 {
				t.Errorf("%s: %d of 100 prompts ask for a function", lang, named)
			}
		}
	}
}
