package sim

import (
	"unicode"

	"weir/generator/corpus"
	"weir/proxy/wire"
)

// countPrompt counts the tokens of a prompt as the corpus counts those that it
// writes, so that a prompt of n tokens is reported as n.
func countPrompt(r *wire.Request) int {
	tok, _ := corpus.ForModel(r.Model)
	p := corpus.Prompt{System: r.System}
	for _, m := range r.Messages {
		var out corpus.Message
		for _, part := range m.Parts {
			switch part.Kind {
			case wire.KindTool:
				out.Calls = append(out.Calls, corpus.Call{Name: part.Name, Arguments: part.Arguments})
			case wire.KindToolResult:
				if out.Text != "" { // each result is a message of its own
					p.Messages = append(p.Messages, out)
				}
				out = corpus.Message{Text: part.Text}
			default:
				out.Text += part.Text + string(part.Raw)
			}
		}
		p.Messages = append(p.Messages, out)
	}
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, corpus.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return p.Count(tok)
}

// promptBytes is the prompt as the prefix cache sees it: tools and system
// first, then the conversation in its order.
func promptBytes(r *wire.Request) []byte {
	var b []byte
	for _, t := range r.Tools {
		b = append(append(append(b, t.Name...), t.Description...), t.Parameters...)
	}
	b = append(b, r.System...)
	for _, m := range r.Messages {
		b = append(b, m.Role...)
		for _, p := range m.Parts {
			b = append(append(append(append(b, p.Text...), p.Name...), p.Arguments...), p.Raw...)
		}
	}
	return b
}

// chinese says whether the last message of a conversation is.
func chinese(r *wire.Request) bool {
	if len(r.Messages) == 0 {
		return false
	}
	for _, p := range r.Messages[len(r.Messages)-1].Parts {
		for i, c := range p.Text {
			if unicode.Is(unicode.Han, c) {
				return true
			}
			if i > 200 {
				break
			}
		}
	}
	return false
}
