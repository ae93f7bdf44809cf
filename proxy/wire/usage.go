package wire

// Merge takes what a later event of the same stream reports: it replaces field
// by field and never adds, since updates are cumulative.
func (u *Usage) Merge(later Usage) {
	u.Input.set(later.Input)
	u.CacheRead.set(later.CacheRead)
	u.CacheWrite.set(later.CacheWrite)
	u.Output.set(later.Output)
	u.Reasoning.set(later.Reasoning)
	u.Fresh.set(later.Fresh)
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
func openAIUsage(c *cursor) Usage {
	var u Usage
	var total Count
	for c.object(); c.field(); {
		switch string(c.name) {
		case "prompt_tokens", "input_tokens":
			u.Input = c.count()
		case "completion_tokens", "output_tokens":
			u.Output = c.count()
		case "total_tokens":
			total = c.count()
		case "prompt_tokens_details", "input_tokens_details":
			for c.object(); c.field(); {
				switch string(c.name) {
				case "cached_tokens":
					u.CacheRead.set(c.count())
				case "cache_write_tokens":
					u.CacheWrite.set(c.count())
				default:
					c.skip()
				}
			}
		case "completion_tokens_details", "output_tokens_details":
			for c.object(); c.field(); {
				if string(c.name) == "reasoning_tokens" {
					u.Reasoning = c.count()
				} else {
					c.skip()
				}
			}
		case "prompt_cache_hit_tokens", "cached_tokens": // DeepSeek, Moonshot
			u.CacheRead.set(c.count())
		default:
			c.skip()
		}
	}
	// Some servers (xAI) leave reasoning out of the completion; their total
	// gives it away.
	if u.Input.Known && u.Output.Known && u.Reasoning.N > 0 && total.N == u.Input.N+u.Output.N+u.Reasoning.N {
		u.Output.N += u.Reasoning.N
	}
	return u
}

// set takes a later figure unless it is unknown.
func (c *Count) set(now Count) {
	if now.Known {
		*c = now
	}
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
func anthropicUsage(c *cursor) (u Usage, tier []byte) {
	for c.object(); c.field(); {
		switch string(c.name) {
		case "input_tokens":
			u.Fresh = c.count()
		case "cache_read_input_tokens":
			u.CacheRead = c.count()
		case "cache_creation_input_tokens":
			u.CacheWrite = c.count()
		case "output_tokens":
			u.Output = c.count()
		case "output_tokens_details":
			for c.object(); c.field(); {
				if string(c.name) == "thinking_tokens" {
					u.Reasoning = c.count()
				} else {
					c.skip()
				}
			}
		case "service_tier":
			if c.peek() == '"' {
				tier = c.raw()
			} else {
				c.skip()
			}
		default:
			c.skip()
		}
	}
	u.sum()
	return u, tier
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

// geminiUsage reads usageMetadata: the candidates leave out the thoughts, and
// the prompt what built-in tools put into it.
func geminiUsage(c *cursor) Usage {
	var u Usage
	var tools Count
	for c.object(); c.field(); {
		switch string(c.name) {
		case "promptTokenCount":
			u.Input = c.count()
		case "toolUsePromptTokenCount":
			tools = c.count()
		case "cachedContentTokenCount":
			u.CacheRead = c.count()
		case "candidatesTokenCount":
			u.Output = c.count()
		case "thoughtsTokenCount":
			u.Reasoning = c.count()
		default:
			c.skip()
		}
	}
	if u.Input.Known {
		u.Input.N += tools.N
	}
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
