package sim

import (
	"container/list"
	"hash/fnv"
)

// blockBytes is the grain of the prefix cache: some 64 tokens of text.
const blockBytes = 256

// prefixCache remembers the blocks of prompts that were read: a prompt whose
// beginning it holds need not be read again from there. Blocks are known by a
// hash of all text up to their end, so a hit means an equal beginning. The
// blocks used longest ago make room.
type prefixCache struct {
	room   int // blocks
	known  map[uint64]*list.Element
	recent *list.List // of hashes, the latest first
}

func newPrefixCache(tokens int) *prefixCache {
	return &prefixCache{room: tokens / (blockBytes / 4), known: map[uint64]*list.Element{}, recent: list.New()}
}

// blocks are the hashes of a prompt's whole blocks.
func blocks(prompt []byte) []uint64 {
	h := fnv.New64a()
	var hashes []uint64
	for ; len(prompt) >= blockBytes; prompt = prompt[blockBytes:] {
		h.Write(prompt[:blockBytes])
		hashes = append(hashes, h.Sum64())
	}
	return hashes
}

// take gives how many of the blocks were known from the beginning on, and
// remembers all of them.
func (c *prefixCache) take(hashes []uint64) (hits int) {
	missed := false
	for _, h := range hashes {
		if e, ok := c.known[h]; ok {
			c.recent.MoveToFront(e)
			if !missed {
				hits++
			}
			continue
		}
		missed = true
		if c.room == 0 {
			return hits
		}
		if c.recent.Len() >= c.room {
			oldest := c.recent.Back()
			delete(c.known, c.recent.Remove(oldest).(uint64))
		}
		c.known[h] = c.recent.PushFront(h)
	}
	return hits
}
