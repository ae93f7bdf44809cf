package wire

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUsageIsReadInTheNormalForm(t *testing.T) {
	for _, row := range []struct {
		name string
		api  API
		body string
		want Usage
	}{
		{"OpenAI: the prompt holds the cached", Chat, `{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":8,"accepted_prediction_tokens":0}}`,
			Usage{Input: N(100), CacheRead: N(64), Output: N(20), Reasoning: N(8)}},
		{"OpenAI: details null are unknown", Chat, `{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":null,"completion_tokens_details":null}`,
			Usage{Input: N(100), Output: N(20)}},
		{"OpenAI: details empty are unknown", Chat, `{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{},"completion_tokens_details":{"reasoning_tokens":null}}`,
			Usage{Input: N(100), Output: N(20)}},
		{"null is unknown, 0 is known", Chat, `{"prompt_tokens":null,"completion_tokens":0}`, Usage{Output: N(0)}},
		{"figures of another type are unknown", Chat, `{"prompt_tokens":"100","completion_tokens":{}}`, Usage{}},
		{"figures with a fraction", Chat, `{"prompt_tokens":100.0,"completion_tokens":2e1}`, Usage{Input: N(100), Output: N(20)}},
		{"usage null", Chat, `null`, Usage{}},
		{"usage empty", Chat, `{}`, Usage{}},
		{"OpenRouter: written to the cache", Chat, `{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":90}}`,
			Usage{Input: N(100), CacheRead: N(0), CacheWrite: N(90), Output: N(20)}},
		{"DeepSeek: hits beside the prompt", Chat, `{"prompt_tokens":100,"completion_tokens":20,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}`,
			Usage{Input: N(100), CacheRead: N(64), Output: N(20)}},
		{"Moonshot: cached beside the prompt", Chat, `{"prompt_tokens":100,"completion_tokens":20,"cached_tokens":64,"prompt_tokens_details":{}}`,
			Usage{Input: N(100), CacheRead: N(64), Output: N(20)}},
		{"xAI: the completion leaves reasoning out", Chat, `{"prompt_tokens":100,"completion_tokens":20,"total_tokens":420,"completion_tokens_details":{"reasoning_tokens":300}}`,
			Usage{Input: N(100), Output: N(320), Reasoning: N(300)}},
		{"Responses", Responses, `{"input_tokens":100,"input_tokens_details":{"cached_tokens":64},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":8},"total_tokens":120}`,
			Usage{Input: N(100), CacheRead: N(64), Output: N(20), Reasoning: N(8)}},
		{"Anthropic: the input leaves the cache out", Messages, `{"input_tokens":4,"cache_creation_input_tokens":30,"cache_read_input_tokens":66,"cache_creation":{"ephemeral_5m_input_tokens":30},"output_tokens":20}`,
			Usage{Fresh: N(4), Input: N(100), CacheRead: N(66), CacheWrite: N(30), Output: N(20)}},
		{"Anthropic: caches null", Messages, `{"input_tokens":4,"cache_creation_input_tokens":null,"cache_read_input_tokens":null,"output_tokens":20}`,
			Usage{Fresh: N(4), Input: N(4), Output: N(20)}},
		{"Anthropic: output alone", Messages, `{"output_tokens":20}`, Usage{Output: N(20)}},
		{"Gemini: candidates leave thoughts out", Gemini, `{"promptTokenCount":100,"cachedContentTokenCount":64,"candidatesTokenCount":12,"thoughtsTokenCount":8,"totalTokenCount":120}`,
			Usage{Input: N(100), CacheRead: N(64), Output: N(20), Reasoning: N(8)}},
		{"Gemini: only thoughts so far", Gemini, `{"promptTokenCount":100,"thoughtsTokenCount":8}`, Usage{Input: N(100), Output: N(8), Reasoning: N(8)}},
		{"Gemini: only the prompt so far", Gemini, `{"promptTokenCount":100,"totalTokenCount":100}`, Usage{Input: N(100)}},
		{"Gemini: the prompt leaves tools' results out", Gemini, `{"promptTokenCount":100,"toolUsePromptTokenCount":50,"candidatesTokenCount":20}`, Usage{Input: N(150), Output: N(20)}},
	} {
		var got Usage
		c := &cursor{b: []byte(row.body)}
		switch row.api {
		case Messages:
			got, _ = anthropicUsage(c)
		case Gemini:
			got = geminiUsage(c)
		default:
			got = openAIUsage(c)
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s:\n%s", row.name, diff)
		}
		if err := c.end("usage"); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// However a provider spreads its figures over a stream, and however often it
// repeats them, they come to what it would have stated at once: caches are
// neither dropped nor added twice.
func TestUsageInPiecesComesToTheWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 3000 {
		whole := someUsage(rng, Messages)
		var merged Usage
		pieces := rng.IntN(4) + 1
		for i := range pieces {
			last := i == pieces-1
			var piece Usage
			for _, f := range []struct{ from, to *Count }{
				{&whole.Fresh, &piece.Fresh}, {&whole.CacheRead, &piece.CacheRead}, {&whole.CacheWrite, &piece.CacheWrite},
				{&whole.Output, &piece.Output}, {&whole.Reasoning, &piece.Reasoning},
			} {
				if last || rng.IntN(2) == 0 {
					*f.to = *f.from
				}
			}
			// What counts up states less at first.
			if !last && piece.Output.Known {
				piece.Output.N = rng.Int64N(piece.Output.N)
			}
			read, _ := anthropicUsage(&cursor{b: appendAnthropicUsage(nil, piece)})
			for range rng.IntN(2) + 1 {
				merged.Merge(read)
			}
			if merged.Fresh.Known && merged.Input.N != merged.Fresh.N+merged.CacheRead.N+merged.CacheWrite.N {
				t.Fatalf("after %d pieces the input is not the sum of its parts: %+v", i+1, merged)
			}
		}
		if diff := cmp.Diff(whole, merged); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestUsageSurvivesWritingAndReading(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for range 3000 {
		u := someUsage(rng, Chat)
		for _, words := range [][2]string{{"prompt", "completion"}, {"input", "output"}} {
			if diff := cmp.Diff(u, openAIUsage(&cursor{b: appendOpenAIUsage(nil, u, words[0], words[1])})); diff != "" {
				t.Fatal(diff)
			}
		}
		u = someUsage(rng, Gemini)
		if diff := cmp.Diff(u, geminiUsage(&cursor{b: appendGeminiUsage(nil, u)})); diff != "" {
			t.Fatal(diff)
		}
		u = someUsage(rng, Messages)
		got, _ := anthropicUsage(&cursor{b: appendAnthropicUsage(nil, u)})
		if diff := cmp.Diff(u, got); diff != "" {
			t.Fatal(diff)
		}
		// Anthropic's own figure is written even where only the sum is known.
		u.Fresh = Count{}
		got, _ = anthropicUsage(&cursor{b: appendAnthropicUsage(nil, u)})
		if got.Input != u.Input {
			t.Fatalf("an input of %d is written as %d", u.Input.N, got.Input.N)
		}
	}
}

func TestUsageIsKnownOnceAnyFigureIs(t *testing.T) {
	if (Usage{}).Known() {
		t.Error("nothing was reported, and it is known")
	}
	for _, u := range []Usage{{Input: N(0)}, {CacheRead: N(0)}, {CacheWrite: N(0)}, {Output: N(0)}, {Reasoning: N(0)}} {
		if !u.Known() {
			t.Errorf("%+v is not known", u)
		}
	}
}
