package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUsageThatAnotherProgramTold(t *testing.T) {
	for _, row := range []struct {
		name, provider string
		told, want     Usage
		sound          bool
	}{
		{"parts within their wholes → as they are", "openai", Usage{Input: N(100), CacheRead: N(90), CacheWrite: N(10), Output: N(5), Reasoning: N(5)},
			Usage{Input: N(100), CacheRead: N(90), CacheWrite: N(10), Output: N(5), Reasoning: N(5)}, true},
		{"Anthropic's input leaves the cache out → their sum", "anthropic", Usage{Input: N(10), CacheRead: N(90), CacheWrite: N(5), Output: N(50)},
			Usage{Input: N(105), CacheRead: N(90), CacheWrite: N(5), Output: N(50)}, true},
		{"Bedrock's as Anthropic's", "aws.bedrock", Usage{Input: N(10), CacheRead: N(90)}, Usage{Input: N(100), CacheRead: N(90)}, true},
		{"a cache larger than another's input → none is known", "openai", Usage{Input: N(10), CacheRead: N(90), Output: N(50)}, Usage{Output: N(50)}, false},
		{"a cache without an input → as it is", "openai", Usage{CacheRead: N(90)}, Usage{CacheRead: N(90)}, true},
		{"Gemini's output leaves the thoughts out → their sum", "gcp.gemini", Usage{Output: N(10), Reasoning: N(40)}, Usage{Output: N(50), Reasoning: N(40)}, true},
		{"more reasoning than another's output → neither is known", "openai", Usage{Input: N(1), Output: N(10), Reasoning: N(40)}, Usage{Input: N(1)}, false},
		{"counts that cannot be → unknown", "openai", Usage{Input: N(-5), Output: N(1 << 40), CacheRead: N(0)}, Usage{CacheRead: N(0)}, false},
		{"nothing → nothing", "", Usage{}, Usage{}, true},
	} {
		got, sound := row.told.Told(row.provider)
		if d := cmp.Diff(row.want, got); d != "" || sound != row.sound {
			t.Errorf("%s: sound %v\n%s", row.name, sound, d)
		}
	}
}

func TestOperationsAsOtherProgramsNameThem(t *testing.T) {
	for name, want := range map[string]Operation{
		"chat": OpChat, "responses": OpChat, "chat.completions": OpChat, "messages.create": OpChat, "completion": OpTextCompletion, "text_completion": OpTextCompletion,
		"generate_content": OpGenerateContent, "generateContent": OpGenerateContent, "embeddings": OpEmbeddings,
		"invoke_agent": "", "execute_tool": "", "": "",
	} {
		if got, ok := OperationNamed(name); got != want || ok != (want != "") {
			t.Errorf("%q is %q, %v; want %q", name, got, ok, want)
		}
	}
}
