package sim

import (
	"container/list"

	"github.com/cespare/xxhash/v2"
)

// blockBytes is the grain of the prefix cache: some 64 tokens of text.
const blockBytes = 256

// prompt is a prompt as the prefix cache knows it: hashes of its whole blocks,
// each of all text up to the block's end, so that equal hashes mean equal
// beginnings.
type prompt struct {
	blocks []uint64
	bytes  int
}

func newPrompt(text []byte) prompt {
	p := prompt{bytes: len(text)}
	h := xxhash.New()
	for ; len(text) >= blockBytes; text = text[blockBytes:] {
		_, _ = h.Write(text[:blockBytes]) // a hash takes everything
		p.blocks = append(p.blocks, h.Sum64())
	}
	return p
}

// tokens is how many of the prompt's input tokens its first blocks are: their
// share of its bytes, rounded down. One token is always left to read, since the
// answer starts from it.
func (p prompt) tokens(blocks, input int) int {
	if blocks == 0 {
		return 0
	}
	return min(input*blocks*blockBytes/p.bytes, input-1)
}

// prefixCache remembers the blocks of prompts that were read: a prompt whose
// beginning it holds need not be read again from there. The blocks used longest
// ago make room, and of one prompt the last ones first: without its beginning
// the rest of a prompt is worth nothing.
type prefixCache struct {
	room   int // blocks
	known  map[uint64]*list.Element
	recent *list.List // of hashes, the latest first
}

func newPrefixCache(tokens int) *prefixCache {
	return &prefixCache{room: tokens / (blockBytes / 4), known: map[uint64]*list.Element{}, recent: list.New()}
}

// holds gives how many of a prompt's blocks are known from its beginning on.
func (c *prefixCache) holds(blocks []uint64) (hits int) {
	for hits < len(blocks) && c.known[blocks[hits]] != nil {
		hits++
	}
	return hits
}

// begins gives what holds does, and counts the blocks as used.
func (c *prefixCache) begins(blocks []uint64) int {
	hits := c.holds(blocks)
	c.keep(blocks[:hits])
	return hits
}

// keep remembers the blocks of a prompt that has been read.
func (c *prefixCache) keep(blocks []uint64) {
	blocks = blocks[:min(len(blocks), c.room)]
	for i := len(blocks) - 1; i >= 0; i-- {
		if e, ok := c.known[blocks[i]]; ok {
			c.recent.MoveToFront(e)
			continue
		}
		if c.recent.Len() == c.room {
			oldest := c.recent.Back()
			delete(c.known, c.recent.Remove(oldest).(uint64))
		}
		c.known[blocks[i]] = c.recent.PushFront(blocks[i])
	}
}
