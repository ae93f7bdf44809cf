package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"weir/proxy/wire"
)

// This file reads streams as naively as can be, whole and with encoding/json:
// a second opinion on which events hold tokens, which shares no code with the
// proxy, the generator or the simulator.

// said is one event of a stream that was read whole.
type said struct {
	end    int // offset of the byte after it, in the plain stream
	output wire.Kind
}

// readWhole lists the events of a stream that has ended.
func readWhole(api wire.API, coding string, body []byte) ([]said, error) {
	if coding == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		if body, err = io.ReadAll(z); err != nil {
			return nil, err
		}
	}
	if bytes.HasPrefix(body, []byte("[")) {
		return readArray(api, body)
	}
	blank := "\n\n"
	if bytes.Contains(body, []byte("\r\n\r\n")) {
		blank = "\r\n\r\n" // as Gemini ends its lines
	}
	var events []said
	at := 0
	for _, block := range strings.SplitAfter(string(body), blank) {
		at += len(block)
		_, data, ok := strings.Cut("\n"+block, "\ndata: ")
		if !ok {
			continue // a comment, or the nothing after the last event
		}
		output, err := outputOf(api, strings.TrimSpace(data))
		if err != nil {
			return nil, err
		}
		events = append(events, said{at, output})
	}
	return events, nil
}

func readArray(api wire.API, body []byte) ([]said, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var events []said
	for d.More() {
		var element json.RawMessage
		if err := d.Decode(&element); err != nil {
			return nil, err
		}
		output, err := outputOf(api, string(element))
		if err != nil {
			return nil, err
		}
		events = append(events, said{int(d.InputOffset()), output})
	}
	return events, nil
}

// outputOf finds the generated output in one event's data.
func outputOf(api wire.API, data string) (wire.Kind, error) {
	if data == "[DONE]" {
		return 0, nil
	}
	var ev map[string]any
	if err := json.Unmarshal([]byte(data), &ev); err != nil {
		return 0, fmt.Errorf("event %.80q: %w", data, err)
	}
	var output wire.Kind
	has := func(kind wire.Kind, from any, path ...string) {
		for _, name := range path {
			object, _ := from.(map[string]any)
			from = object[name]
		}
		if s, _ := from.(string); s != "" {
			output |= kind
		}
	}
	list := func(from any, name string) []any {
		object, _ := from.(map[string]any)
		l, _ := object[name].([]any)
		return l
	}
	kind, _ := ev["type"].(string)
	switch api {
	case wire.Chat:
		for _, choice := range list(ev, "choices") {
			has(wire.KindText, choice, "delta", "content")
			has(wire.KindReasoning, choice, "delta", "reasoning_content")
			has(wire.KindReasoning, choice, "delta", "reasoning")
			has(wire.KindRefusal, choice, "delta", "refusal")
			for _, tool := range list(choice.(map[string]any)["delta"], "tool_calls") {
				has(wire.KindTool, tool, "function", "name")
				has(wire.KindTool, tool, "function", "arguments")
			}
		}
	case wire.Completions:
		for _, choice := range list(ev, "choices") {
			has(wire.KindText, choice, "text")
		}
	case wire.Responses:
		switch kind {
		case "response.output_text.delta":
			has(wire.KindText, ev, "delta")
		case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
			has(wire.KindReasoning, ev, "delta")
		case "response.refusal.delta":
			has(wire.KindRefusal, ev, "delta")
		case "response.function_call_arguments.delta":
			has(wire.KindTool, ev, "delta")
		case "response.output_item.added":
			has(wire.KindTool, ev, "item", "name")
		}
	case wire.Messages:
		has(wire.KindText, ev, "delta", "text")
		has(wire.KindReasoning, ev, "delta", "thinking")
		has(wire.KindTool, ev, "delta", "partial_json")
		has(wire.KindTool, ev, "content_block", "name")
	case wire.Gemini:
		for _, candidate := range list(ev, "candidates") {
			for _, part := range list(candidate.(map[string]any)["content"], "parts") {
				text := wire.KindText
				if thought, _ := part.(map[string]any)["thought"].(bool); thought {
					text = wire.KindReasoning
				}
				has(text, part, "text")
				has(wire.KindTool, part, "functionCall", "name")
			}
		}
	}
	return output, nil
}
