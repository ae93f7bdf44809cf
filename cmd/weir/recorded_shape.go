package main

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/cespare/xxhash/v2"

	"weir/generator/loadmodel"
	"weir/proxy/wire"
	"weir/store"
	"weir/store/call"
)

// How many calls are looked at to learn how many bytes a token has, and how
// many of them must have told it.
const (
	measuredCalls  = 2000
	measuredShapes = 200
)

// measure learns from calls with a shape and usage how many bytes of what a
// request is made of are a token.
func (r *recorded) measure(ctx context.Context, selection store.Selection) error {
	var bytes, tokens float64
	shapes := 0
	for c, err := range r.db.Calls(ctx, selection, store.Order{By: "oldest", Limit: measuredCalls}) {
		if err != nil {
			return err
		}
		if !c.Usage.Input.Known || c.Usage.Input.N == 0 || c.UsageSource == call.UsageSuspicious {
			continue
		}
		blocks, err := r.shape(ctx, c)
		if err != nil {
			return err
		}
		if len(blocks) == 0 {
			continue
		}
		for _, b := range blocks {
			bytes += float64(b.Bytes)
		}
		tokens += float64(c.Usage.Input.N)
		if shapes++; shapes == measuredShapes {
			break
		}
	}
	if bytes > 0 && tokens > 0 {
		r.bytesPerToken = bytes / tokens
	}
	r.unshaped = 0
	return nil
}

// shape is what was kept of what a call's request is made of; nil: nothing.
func (r *recorded) shape(ctx context.Context, c *call.Call) ([]wire.Block, error) {
	content, ok, err := r.db.Content(ctx, c.SpanID)
	if err != nil {
		return nil, err
	}
	if !ok || content.Shape == nil || len(content.Shape.Blocks) == 0 {
		r.unshaped++
		return nil, nil
	}
	return content.Shape.Blocks, nil
}

// hashIDs cut a request into blocks of as many bytes as OwnBlockTokens have on
// average. A block's id stands for all that was said up to its end, and for the
// whole of the part in whose midst that is: prompts that part there share less
// than they did, by one part, and never more.
func (r *recorded) hashIDs(blocks []wire.Block, input int) []int64 {
	if len(blocks) == 0 || r.bytesPerToken == 0 {
		return nil
	}
	size := max(int(math.Round(r.bytesPerToken*loadmodel.OwnBlockTokens)), 1)
	most := (input + loadmodel.OwnBlockTokens - 1) / loadmodel.OwnBlockTokens
	var ids []int64
	h := xxhash.New()
	var word [8]byte
	add := func(n uint64) {
		binary.LittleEndian.PutUint64(word[:], n)
		_, _ = h.Write(word[:]) // a hash takes everything
	}
	end, next := 0, size // bytes
	for _, b := range blocks {
		add(b.Hash)
		_, _ = h.WriteString(string(b.Role) + " " + b.Name)
		for end += b.Bytes; next <= end && len(ids) < most; next += size {
			add(uint64(next))                   //nolint:gosec // it is positive
			ids = append(ids, int64(h.Sum64())) //nolint:gosec // any bits will do
		}
	}
	return ids
}
