package wire

// gemini reads a request; inner says that it stands inside another object, as
// Code Assist sends it.
func (s *shaper) gemini(inner bool) {
	for s.object(); s.field(); {
		switch string(s.name) {
		case "tools":
			for s.array(); s.element(); {
				s.geminiTools()
			}
		case "systemInstruction", "system_instruction":
			s.into = &s.system
			s.geminiParts(System)
		case "contents":
			s.into = &s.messages
			for s.array(); s.element(); {
				s.geminiContent()
			}
		case "request":
			if inner {
				s.skip()
			} else {
				s.gemini(true)
			}
		default:
			s.skip()
		}
	}
}

// geminiTools reads declarations of functions; a tool of Google's own has the
// name of its field.
func (s *shaper) geminiTools() {
	for s.object(); s.field(); {
		switch field := s.name; {
		case string(field) == "functionDeclarations" || string(field) == "function_declarations":
			s.defineAll()
		case s.peek() == 'n':
			s.skip()
		default:
			s.define(s.kept(field))
		}
	}
}

func (s *shaper) geminiContent() {
	word, whole := s.ahead("role")
	switch {
	case string(word) == "model":
		s.geminiParts(Assistant)
	case word == nil && !whole:
		s.skip()
	default:
		s.geminiParts(User)
	}
}

func (s *shaper) geminiParts(role Role) {
	for s.object(); s.field(); {
		if string(s.name) != "parts" {
			s.skip()
			continue
		}
		for s.array(); s.element(); {
			s.geminiPart(role)
		}
	}
}

func (s *shaper) geminiPart(role Role) {
	s.peek()
	from, before := s.i, len(*s.into)
	kind := KindText
	var text saying
	for s.object(); s.field(); {
		switch string(s.name) {
		case "text":
			text = s.text()
		case "thought":
			if thought, _ := s.truth(); thought {
				kind = KindReasoning
			}
		case "functionCall", "function_call":
			s.geminiCall()
		case "functionResponse", "function_response":
			s.geminiResult()
		default:
			s.skip()
		}
	}
	switch {
	case s.bad || len(*s.into) > before:
	case text.words:
		s.addWords(role, kind, text)
	default:
		s.i = from
		s.addOther(role)
	}
}

func (s *shaper) geminiCall() {
	var id []byte
	var name string
	arguments := noArguments
	for s.object(); s.field(); {
		switch string(s.name) {
		case "id":
			id = s.word()
		case "name":
			name = s.tool()
		case "args":
			arguments = s.arguments()
		default:
			s.skip()
		}
	}
	s.call(id, name, arguments)
}

func (s *shaper) geminiResult() {
	var name string
	var result saying
	for s.object(); s.field(); {
		switch string(s.name) {
		case "name":
			name = s.tool()
		case "response":
			result = s.content()
		default:
			s.skip()
		}
	}
	s.add(ToolRole, KindToolResult, name, result)
}
