package wire

import "github.com/tidwall/gjson"

// Merge takes what a later event of the same stream reports: it replaces field
// by field and never adds, since updates are cumulative.
func (u *Usage) Merge(later Usage) {
	replace := func(have *Count, now Count) {
		if now.Known {
			*have = now
		}
	}
	replace(&u.Input, later.Input)
	replace(&u.CacheRead, later.CacheRead)
	replace(&u.CacheWrite, later.CacheWrite)
	replace(&u.Output, later.Output)
	replace(&u.Reasoning, later.Reasoning)
	replace(&u.Fresh, later.Fresh)
	u.sum()
}

// sum makes Input the sum of its parts where the dialect reports parts.
func (u *Usage) sum() {
	if u.Fresh.Known {
		u.Input = N(u.Fresh.N + u.CacheRead.N + u.CacheWrite.N)
	}
}

// openAIUsage reads the usage object of chat completions, completions and
// Responses. Prompt counts hold the cached tokens.
func openAIUsage(v gjson.Result) Usage {
	var u Usage
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "prompt_tokens", "input_tokens":
			u.Input = count(v)
		case "completion_tokens", "output_tokens":
			u.Output = count(v)
		case "prompt_tokens_details", "input_tokens_details":
			u.CacheRead = count(v.Get("cached_tokens"))
			u.CacheWrite = count(v.Get("cache_write_tokens"))
		case "completion_tokens_details", "output_tokens_details":
			u.Reasoning = count(v.Get("reasoning_tokens"))
		}
		return true
	})
	return u
}

// appendOpenAIUsage writes a usage object; in and out are the words for prompt
// and answer, which differ between APIs.
func appendOpenAIUsage(dst []byte, u Usage, in, out string) []byte {
	dst = append(dst, '{')
	dst = appendCount(dst, in+"_tokens", u.Input)
	dst = appendCount(dst, out+"_tokens", u.Output)
	if u.Input.Known && u.Output.Known {
		dst = appendCount(dst, "total_tokens", N(u.Input.N+u.Output.N))
	}
	if u.CacheRead.Known || u.CacheWrite.Known {
		dst = openObject(dst, in+"_tokens_details")
		dst = appendCount(dst, "cached_tokens", u.CacheRead)
		dst = appendCount(dst, "cache_write_tokens", u.CacheWrite)
		dst = append(dst, '}')
	}
	if u.Reasoning.Known {
		dst = openObject(dst, out+"_tokens_details")
		dst = appendCount(dst, "reasoning_tokens", u.Reasoning)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func openObject(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = quote(dst, name)
	return append(dst, ':', '{')
}

// anthropicUsage reads Messages' usage: input_tokens leaves out what the cache
// gave and took, so all three are the input.
func anthropicUsage(v gjson.Result) Usage {
	var u Usage
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "input_tokens":
			u.Fresh = count(v)
		case "cache_read_input_tokens":
			u.CacheRead = count(v)
		case "cache_creation_input_tokens":
			u.CacheWrite = count(v)
		case "output_tokens":
			u.Output = count(v)
		case "output_tokens_details":
			u.Reasoning = count(v.Get("thinking_tokens"))
		}
		return true
	})
	u.sum()
	return u
}

func appendAnthropicUsage(dst []byte, u Usage) []byte {
	dst = append(dst, '{')
	fresh := u.Fresh
	if !fresh.Known && u.Input.Known {
		fresh = N(u.Input.N - u.CacheRead.N - u.CacheWrite.N)
	}
	dst = appendCount(dst, "input_tokens", fresh)
	dst = appendCount(dst, "cache_creation_input_tokens", u.CacheWrite)
	dst = appendCount(dst, "cache_read_input_tokens", u.CacheRead)
	dst = appendCount(dst, "output_tokens", u.Output)
	if u.Reasoning.Known {
		dst = openObject(dst, "output_tokens_details")
		dst = appendCount(dst, "thinking_tokens", u.Reasoning)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// geminiUsage reads usageMetadata: the candidates leave out the thoughts.
func geminiUsage(v gjson.Result) Usage {
	var u Usage
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "promptTokenCount":
			u.Input = count(v)
		case "cachedContentTokenCount":
			u.CacheRead = count(v)
		case "candidatesTokenCount":
			u.Output = count(v)
		case "thoughtsTokenCount":
			u.Reasoning = count(v)
		}
		return true
	})
	if u.Reasoning.Known {
		u.Output = N(u.Output.N + u.Reasoning.N)
	}
	return u
}

func appendGeminiUsage(dst []byte, u Usage) []byte {
	dst = append(dst, '{')
	dst = appendCount(dst, "promptTokenCount", u.Input)
	dst = appendCount(dst, "cachedContentTokenCount", u.CacheRead)
	if u.Output.Known {
		dst = appendCount(dst, "candidatesTokenCount", N(u.Output.N-u.Reasoning.N))
	}
	dst = appendCount(dst, "thoughtsTokenCount", u.Reasoning)
	if u.Input.Known && u.Output.Known {
		dst = appendCount(dst, "totalTokenCount", N(u.Input.N+u.Output.N))
	}
	return append(dst, '}')
}
