package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fields are the top level of a request body, in a fixed order: the same
// request always gives the same bytes.
type fields struct {
	names  []string
	values map[string]json.RawMessage
	extra  map[string]json.RawMessage
	err    error
}

func newFields(r *Request) *fields {
	return &fields{values: map[string]json.RawMessage{}, extra: r.Extra}
}

func (f *fields) set(name string, v any) {
	raw, ok := v.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = marshal(v); err != nil && f.err == nil {
			f.err = fmt.Errorf("write request: %s: %w", name, err)
		}
	}
	if _, again := f.values[name]; !again {
		f.names = append(f.names, name)
	}
	f.values[name] = raw
}

func (f *fields) count(name string, c Count) {
	if c.Known {
		f.set(name, c.N)
	}
}

func (f *fields) float(name string, x Float) {
	if x.Known {
		f.set(name, x.F)
	}
}

func (f *fields) string(name, s string) {
	if s != "" {
		f.set(name, jsonString(s))
	}
}

// openAI sets what OpenAI's APIs share.
func (f *fields) openAI(h *Head) {
	f.string("model", h.Model)
	if h.Stream {
		f.set("stream", true)
	}
	f.count(maxTokensName(h.Model), h.MaxTokens)
	f.float("temperature", h.Temperature)
	f.float("top_p", h.TopP)
	f.float("top_k", h.TopK)
	f.float("frequency_penalty", h.FrequencyPenalty)
	f.float("presence_penalty", h.PresencePenalty)
	f.count("seed", h.Seed)
	f.count("n", h.Choices)
	if len(h.Stop) > 0 {
		f.set("stop", h.Stop)
	}
	f.string("reasoning_effort", h.ReasoningLevel)
	f.string("service_tier", h.ServiceTier)
	f.string("user", h.User)
	f.string("prompt_cache_key", h.PromptCacheKey)
	if h.IncludeUsage != nil {
		f.set("stream_options", map[string]bool{"include_usage": *h.IncludeUsage})
	}
	switch h.OutputType {
	case "text":
		f.set("response_format", map[string]string{"type": "text"})
	case "json":
		f.set("response_format", map[string]string{"type": "json_object"})
	}
}

// maxTokensName is what a model calls its limit. Every server that speaks
// chat completions knows max_tokens, and several (DeepSeek, Ollama) pass over
// max_completion_tokens and answer without a limit; only OpenAI's reasoning
// models refuse the former.
func maxTokensName(model string) string {
	name := model[strings.LastIndexByte(model, '/')+1:]
	series, ok := strings.CutPrefix(name, "gpt-")
	reasons := ok && series != "" && series[0] >= '5' && series[0] <= '9'
	if series, ok = strings.CutPrefix(name, "o"); ok && series != "" {
		reasons = series[0] >= '1' && series[0] <= '9'
	}
	if reasons {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

func (f *fields) append(dst []byte) ([]byte, error) {
	if f.err != nil {
		return dst, f.err
	}
	for _, name := range slices.Sorted(maps.Keys(f.extra)) {
		if !json.Valid(f.extra[name]) {
			return dst, fmt.Errorf("write request: extra field %q is not JSON", name)
		}
		f.set(name, f.extra[name])
	}
	dst = append(dst, '{')
	for i, name := range f.names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = quote(dst, name)
		dst = append(dst, ':')
		dst = append(dst, f.values[name]...)
	}
	return append(dst, '}'), nil
}
