package wire

import (
	"strings"
	"testing"
)

// Whatever the pieces, the short fields are found, and pictures are counted.
func TestSkimFindsTheHead(t *testing.T) {
	picture := `"data:image/png;base64,` + strings.Repeat("QUJD", 50_000) + `"`
	prose := `"` + strings.Repeat(`a \"word\" \\ `, 50_000) + `"`
	for _, row := range []struct {
		sentence, body string
		model          string
		whole          bool
		media          int
	}{
		{"the model stands last", `{"max_tokens":5,"messages":[{"content":[{"text":` + prose + `},{"url":` + picture + `},{"data":"` + picture[23:] + `}]}],"model":"m","stream":true}`, "m", true, 2},
		{"pictures", `{"messages":[{"content":[{"url":` + picture + `},{"url":` + picture + `}]}], "model" : "m" }`, "m", true, 2},
		{"prose is none", `{"messages":[{"content":` + prose + `}],"model":"m"}` + "\n", "m", true, 0},
		{"a long word in the place of the model", `{"messages":[],"model":` + picture + `,"stream":true}`, "", true, 1},
		{"a model deeper down is none", `{"messages":[{"model":"x"}],"stream":true}`, "", true, 0},
		{"brackets in strings", `{"a":"}]{[\"}","model":"m"}`, "m", true, 0},
		{"broken off in a string", `{"model":"m","messages":` + prose[:100_000], "m", false, 0},
		{"broken off before it", `{"messages":` + prose + `,"mod`, "", false, 0},
		{"no object", `["model"]`, "", false, 0},
		{"nothing", ``, "", false, 0},
		{"an empty object", `{}`, "", true, 0},
		{"too many fields", `{` + strings.Repeat(`"a":0,`, longestSkim) + `"model":"m"}`, "", false, 0},
	} {
		for _, size := range []int{1, 7, 1000, 1 << 30} {
			if size == 1 && len(row.body) > 1<<20 {
				continue
			}
			var s Skim
			for rest := row.body; rest != ""; rest = rest[min(size, len(rest)):] {
				s.Feed([]byte(rest[:min(size, len(rest))]))
			}
			var h Head
			_ = For(Messages).ParseHead(&h, s.Head())
			if h.Model != row.model || s.Whole() != row.whole || s.Size != int64(len(row.body)) || cap(s.Head()) > 4*longestSkim {
				t.Errorf("%s, by %d: model %q, whole %v, %d bytes, %d kept", row.sentence, size, h.Model, s.Whole(), s.Size, cap(s.Head()))
			}
			if s.Media != row.media {
				t.Errorf("%s, by %d: %d pictures of %d bytes", row.sentence, size, s.Media, s.MediaBytes)
			}
		}
	}
}
