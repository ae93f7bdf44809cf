package corpus

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var hardTexts = []string{
	"", " ", "a", "Hello, world!", "I'm sure they'LL say it's fine, we'd've gone", "'s 's'T 'RE x'Ve",
	"HTTPServer XMLHttpRequest iPhone NASA's ABCdef中文ABC中文abc", "123456789 1.5e10 ٣٤٥ ½",
	"  leading\n\n\n  indented\r\n\r\n\tTabs\t\t end   ", "a  b   c    d\n e \n  f", "//x\n//y;\n//z }/\n", "…— “quoted” ‘it’s’ €5,–",
	"春天的午后，阳光透过窗户洒在书桌上。他说：“我们明天再谈！”", "混合mixed文本text，第12章 chapter 3。", "日本語のテキストとカタカナ、한국어 텍스트도",
	"naïve café résumé e\u0301 \u0301x A\u0301b", "👩‍👩‍👧 emoji 🌊🌊🌊 𝒳𝒴 𐐀𐐨 𠀀𠀁", "func (t *T) Run(ctx context.Context) error {\n\tif err != nil {\n\t\treturn fmt.Errorf(\"x: %w\", err)\n\t}\n}\n",
	`{"path":"/src/main.go","args":[1,2,3],"ok":true,"nested":{"a":null}}`, "\u3000全角空格\u00a0nbsp\u2028ls",
	strings.Repeat("a", 500), strings.Repeat("中", 200), strings.Repeat(" ", 90) + "x", "ǅungla ʰello ªº",
}

func TestCountIsTheLibrarysCount(t *testing.T) {
	for _, tok := range []*Tokenizer{o200k(), cl100k()} {
		for _, s := range hardTexts {
			want, err := tok.codec.Count(s)
			if err != nil {
				t.Fatal(err)
			}
			if got := tok.Count(s); got != want {
				t.Errorf("%s: %.60q has %d tokens, counted %d", tok.Name(), s, want, got)
			}
		}
	}
}

// The library's generated pattern takes each line end alone where white space
// stands between them; the pattern that it was generated from takes them
// together, and "\n \n" is a token.
var lineEndsApart = regexp.MustCompile(`[\r\n][\s\v\x{85}\p{Z}]*[\t\f\v\x{85}\p{Z}][\s\v\x{85}\p{Z}]*[\r\n]`)

func TestBlankLinesAreOnePiece(t *testing.T) {
	if got := o200k().Count("\n \n0"); got != 2 {
		t.Errorf("a blank line of one space and a digit are 2 tokens, counted %d", got)
	}
}

func FuzzCount(f *testing.F) {
	for _, s := range hardTexts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || strings.ContainsAny(s, "ſ\x7f") || lineEndsApart.MatchString(s) {
			return
		}
		for _, tok := range []*Tokenizer{o200k(), cl100k()} {
			want, err := tok.codec.Count(s)
			if err != nil {
				t.Skip()
			}
			if got := tok.Count(s); got != want {
				t.Errorf("%s: %q has %d tokens, counted %d", tok.Name(), s, want, got)
			}
		}
	})
}

func TestPiecesAreTheTokensAndJoinToTheText(t *testing.T) {
	tok := o200k()
	for _, s := range hardTexts {
		for _, k := range []int{1, 3, 16} {
			var joined strings.Builder
			total := 0
			for piece, n := range tok.Pieces(s, k) {
				if piece == "" || !utf8.ValidString(piece) {
					t.Errorf("%.40q by %d: the piece %q is no text", s, k, piece)
				}
				joined.WriteString(piece)
				total += n
			}
			if diff := cmp.Diff(s, joined.String()); diff != "" {
				t.Errorf("by %d: the pieces join to another text:\n%s", k, diff)
			}
			if want := tok.Count(s); total != want {
				t.Errorf("%.40q by %d: the pieces stand for %d tokens of %d", s, k, total, want)
			}
		}
	}
	var sizes []int
	for _, n := range tok.Pieces("one two three four five six seven", 3) {
		sizes = append(sizes, n)
	}
	if diff := cmp.Diff([]int{3, 3, 1}, sizes); diff != "" {
		t.Errorf("seven words by three:\n%s", diff)
	}
}

func TestCutIsExactForWhatItGives(t *testing.T) {
	tok := o200k()
	for _, s := range hardTexts {
		for _, n := range []int{0, 1, 2, 5, 9, 1000} {
			got, count := tok.Cut(s, n)
			if !strings.HasPrefix(s, got) || count > n || count != tok.Count(got) {
				t.Errorf("%.40q cut to %d: %q counts %d, said %d", s, n, got, tok.Count(got), count)
			}
		}
	}
}

func TestForModel(t *testing.T) {
	for _, row := range []struct {
		model, name string
		known       bool
	}{
		{"gpt-4o-mini", "o200k_base", true},
		{"openai/gpt-5.2", "o200k_base", true},
		{"gpt-4-turbo", "cl100k_base", true},
		{"gpt-3.5-turbo", "cl100k_base", true},
		{"davinci-002", "cl100k_base", true},
		{"gpt-4.1-nano", "o200k_base", true},
		{"o3-mini", "o200k_base", true},
		{"o300-of-mine", "o200k_base", false},
		{"claude-opus-5", "o200k_base", false},
		{"qwen3-32b", "o200k_base", false},
		{"", "o200k_base", false},
	} {
		tok, known := ForModel(row.model)
		if tok.Name() != row.name || known != row.known {
			t.Errorf("%q → %s, known %v; want %s, %v", row.model, tok.Name(), known, row.name, row.known)
		}
	}
}

func BenchmarkCount(b *testing.B) {
	texts := map[string]string{
		"english": strings.Repeat("The quarterly review found that latency grew faster than the number of requests, which nobody had expected. ", 500),
		"chinese": strings.Repeat("季度评审发现，延迟的增长速度超过了请求数量的增长，这是所有人都没有预料到的结果。", 500),
	}
	for name, s := range texts {
		tok := o200k()
		n := tok.Count(s)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				tok.Count(s)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mtokens/s")
		})
	}
}
