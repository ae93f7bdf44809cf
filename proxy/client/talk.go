package client

import (
	"slices"

	"weir/proxy/wire"
)

// speaker says whose a block of a conversation is.
type speaker uint8

const (
	user speaker = iota + 1
	tool
	assistant
)

// talk is the conversation that a request carries: its messages without system
// prompts, definitions of tools and reasoning, which clients change and drop
// between calls, and without what the assistant has begun to say behind the
// last question.
type talk struct {
	ends  []uint64 // a hash of the conversation from its beginning to the end of each block
	who   []speaker
	at    []int32 // where in the shape each block stands
	tail  uint64  // a hash of the last question: what stands behind the assistant's last word
	asked uint64  // the hash of the user's last block; 0 for none
	begun bool    // the assistant has begun to answer the last question
}

// read takes the conversation out of a shape.
func read(shape wire.Shape) (t talk) {
	t.ends = make([]uint64, 0, len(shape.Blocks))
	t.who = make([]speaker, 0, len(shape.Blocks))
	t.at = make([]int32, 0, len(shape.Blocks))
	end, length, before := uint64(0), 0, speaker(0)
	for i := range shape.Blocks {
		b := &shape.Blocks[i]
		who := speakerOf(b)
		if who == 0 {
			continue
		}
		end = mix(mix(end, b.Hash), uint64(who))
		t.ends, t.who, t.at = append(t.ends, end), append(t.who, who), append(t.at, int32(i))
		if who != assistant {
			if before == assistant {
				t.tail = 0
			}
			t.tail = mix(t.tail, b.Hash)
			length = len(t.ends)
		}
		if who == user {
			t.asked = b.Hash
		}
		before = who
	}
	t.begun = length < len(t.ends)
	t.ends, t.who = t.ends[:length], t.who[:length]
	return t
}

func speakerOf(b *wire.Block) speaker {
	switch {
	case b.Role == wire.System || b.Role == wire.Definition || b.Kind == wire.KindReasoning:
		return 0
	case b.Role == wire.Assistant:
		return assistant
	case b.Role == wire.ToolRole || b.Kind == wire.KindToolResult:
		return tool
	}
	return user
}

func (t *talk) empty() bool { return len(t.ends) == 0 }

// end is the hash of the whole conversation.
func (t *talk) end() uint64 { return t.ends[len(t.ends)-1] }

// spoken says whether the assistant has spoken in the first blocks.
func (t *talk) spoken(blocks int) bool {
	return slices.Contains(t.who[:blocks], assistant)
}

// questions counts what the user asked from a block on: any number of blocks
// and messages that no answer divides is one question, as clients put reminders
// and the like beside what the user wrote.
func (t *talk) questions(from int) (n int) {
	asking := false
	for _, w := range t.who[from:] {
		if w == user && !asking {
			n++
		}
		asking = w == user || asking && w == tool
	}
	return n
}

// answered counts the questions that have an answer.
func (t *talk) answered() int {
	n := t.questions(0)
	if users, _ := t.last(); users && !t.begun {
		n--
	}
	return n
}

// last says who speaks behind the assistant's last word.
func (t *talk) last() (users, tools bool) {
	for i := len(t.who) - 1; i >= 0 && t.who[i] != assistant; i-- {
		users = users || t.who[i] == user
		tools = tools || t.who[i] == tool
	}
	return users, tools
}

// mix is a hash of a hash and what follows it.
func mix(a, b uint64) uint64 {
	a = a*0x9e3779b97f4a7c15 ^ b
	a ^= a >> 32
	a *= 0xd6e8feb86659fd93
	return a ^ a>>32
}
