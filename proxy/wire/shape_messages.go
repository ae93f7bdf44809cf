package wire

func (s *shaper) anthropic() {
	for s.object(); s.field(); {
		switch string(s.name) {
		case "tools":
			s.defineAll()
		case "system":
			s.into = &s.system
			s.says(System)
		case "messages":
			s.into = &s.messages
			for s.array(); s.element(); {
				s.anthropicMessage()
			}
		default:
			s.skip()
		}
	}
}

func (s *shaper) anthropicMessage() {
	word, whole := s.ahead("role")
	role := User
	switch string(word) {
	case "assistant":
		role = Assistant
	case "system":
		role = System
	case "":
		if !whole {
			s.skip()
			return
		}
	}
	for s.object(); s.field(); {
		if string(s.name) == "content" {
			s.says(role)
		} else {
			s.skip()
		}
	}
}
