package wire

import (
	"bytes"
	"cmp"
	"slices"
)

func (s *shaper) chat() {
	for s.object(); s.field(); {
		switch string(s.name) {
		case "tools", "functions":
			s.defineAll()
		case "messages":
			s.into = &s.messages
			for s.array(); s.element(); {
				s.chatMessage()
			}
		default:
			s.skip()
		}
	}
}

func (s *shaper) chatMessage() {
	word, whole := s.ahead("role")
	role := openAIRole(word)
	switch {
	case word == nil && !whole:
		s.skip()
		return
	case role == ToolRole:
		s.chatResult()
		return
	}
	from, thought := len(s.messages), false
	for s.object(); s.field(); {
		switch string(s.name) {
		case "reasoning_content", "reasoning": // some send both, with the same words
			if what := s.content(); what.bytes > 0 && !thought {
				thought = true
				s.add(role, KindReasoning, "", what)
			}
		case "content":
			s.says(role)
		case "refusal":
			s.addWords(role, KindRefusal, s.text())
		case "tool_calls":
			for s.array(); s.element(); {
				s.chatCall()
			}
		case "function_call": // the API's first form of a call, without an id
			name, arguments := s.chatFunction()
			if name != "" {
				s.call(nil, name, arguments)
			}
		default:
			s.skip()
		}
	}
	slices.SortStableFunc(s.messages[from:], func(a, b Block) int { return cmp.Compare(chatOrder(a.Kind), chatOrder(b.Kind)) })
}

// chatOrder is the order in which a message is said, whatever that of its keys.
func chatOrder(k Kind) int {
	switch k {
	case KindReasoning:
		return 0
	case KindRefusal:
		return 2
	case KindTool:
		return 3
	}
	return 1
}

func (s *shaper) chatResult() {
	var id []byte
	var name string
	var result saying
	for s.object(); s.field(); {
		switch string(s.name) {
		case "content":
			result = s.content()
		case "tool_call_id":
			id = s.word()
		case "name":
			name = s.tool()
		default:
			s.skip()
		}
	}
	if name == "" {
		name = s.caller(id)
	}
	s.add(ToolRole, KindToolResult, name, result)
}

// openAIRole is who speaks under a role of OpenAI's; the user when it is
// unknown.
func openAIRole(word []byte) Role {
	switch string(word) {
	case "system", "developer":
		return System
	case "assistant":
		return Assistant
	case "tool", "function":
		return ToolRole
	}
	return User
}

func (s *shaper) chatCall() {
	var id []byte
	var name string
	arguments := noArguments
	for s.object(); s.field(); {
		switch string(s.name) {
		case "id":
			id = s.word()
		case "function", "custom":
			name, arguments = s.chatFunction()
		default:
			s.skip()
		}
	}
	s.call(id, name, arguments)
}

// chatFunction reads which tool a call calls, and with what.
func (s *shaper) chatFunction() (name string, arguments saying) {
	arguments = noArguments
	for s.object(); s.field(); {
		switch string(s.name) {
		case "name":
			name = s.tool()
		case "arguments", "input":
			arguments = s.arguments()
		default:
			s.skip()
		}
	}
	return name, arguments
}

// completions reads a prompt: a string, strings, or the numbers of tokens.
func (s *shaper) completions() {
	s.into = &s.messages
	for s.object(); s.field(); {
		switch {
		case string(s.name) != "prompt":
			s.skip()
		case s.peek() == '"':
			s.addWords(User, KindText, s.text())
		default:
			s.prompts()
		}
	}
}

func (s *shaper) prompts() {
	from := s.i
	for s.array(); s.element(); {
		switch s.peek() {
		case '"':
			s.addWords(User, KindText, s.text())
		case '[':
			s.addOther(User)
		default: // the numbers are one prompt
			s.i = from
			s.addOther(User)
			return
		}
	}
}

func (s *shaper) responses() {
	for s.object(); s.field(); {
		switch string(s.name) {
		case "tools":
			s.defineAll()
		case "instructions":
			s.into = &s.system
			s.says(System)
		case "input":
			s.into = &s.messages
			if s.peek() == '"' {
				s.addWords(User, KindText, s.text())
				continue
			}
			for s.array(); s.element(); {
				s.responsesItem()
			}
		default:
			s.skip()
		}
	}
}

func (s *shaper) responsesItem() {
	kind, whole := s.ahead("type")
	result := bytes.HasSuffix(kind, []byte("_call_output"))
	switch string(kind) {
	case "", "message":
		s.responsesMessage(whole)
		return
	case "item_reference": // its id is all that it says
		s.peek()
		from := s.i
		hash := s.canonical()
		s.add(Assistant, KindOther, "", saying{hash: hash, bytes: s.i - from})
		return
	case "function_call", "custom_tool_call", "local_shell_call", "reasoning":
	default:
		if !result {
			s.addOther(Assistant)
			return
		}
	}
	var id []byte
	var name string
	var thought, summary, sealed, output saying
	arguments := noArguments
	for s.object(); s.field(); {
		switch string(s.name) {
		case "call_id":
			id = s.word()
		case "name":
			name = s.tool()
		case "arguments", "input", "action":
			arguments = s.arguments()
		case "output":
			output = s.content()
		case "content":
			thought = s.content()
		case "summary":
			summary = s.content()
		case "encrypted_content":
			sealed = s.content()
		default:
			s.skip()
		}
	}
	switch {
	case result:
		s.add(ToolRole, KindToolResult, s.caller(id), output)
	case string(kind) == "reasoning":
		if thought.bytes == 0 {
			thought = summary
		}
		if thought.bytes == 0 { // only the provider can read it
			thought = sealed
		}
		s.add(Assistant, KindReasoning, "", thought)
	case string(kind) == "local_shell_call":
		s.call(id, "local_shell", arguments)
	default:
		s.call(id, name, arguments)
	}
}

// responsesMessage reads a message; known is false where the body breaks off
// before it is known to be one.
func (s *shaper) responsesMessage(known bool) {
	word, _ := s.ahead("role")
	if word == nil && !known {
		s.skip()
		return
	}
	for s.object(); s.field(); {
		if string(s.name) == "content" {
			s.says(openAIRole(word))
		} else {
			s.skip()
		}
	}
}
