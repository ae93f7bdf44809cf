package loadmodel

import (
	"slices"
	"time"
)

// probeRows is how many rows OpenTrace looks at.
const probeRows = 5000

// probed is what the beginning of a trace tells of it.
type probed struct {
	blocked  int // rows with hash ids
	filled   int // of which the ids are as many as BlockTokens asks for
	blocks   int // tokens that the rows' ids stand for where they contradict the format; 0: they do not
	later    int // later turns of sessions whose lengths may be of what is new alone
	grown    int // of which hold what their session's turn before left behind: they count the history
	formerly map[string]int
}

// probe reads the first rows, and takes the measure of their clock: it is
// coarse when most rows share their instant with another, and its tick is the
// usual distance between instants. It finds out how many tokens a hash id
// stands for, and whether turns count their history.
func (t *Trace) probe() error {
	rows, limit := 0, probeRows
	if t.options.Limit > 0 {
		limit = min(limit, t.options.Limit)
	}
	p := probed{formerly: map[string]int{}}
	fits := map[int]int{}
	var last time.Duration
	var gaps []time.Duration
	for r, err := range t.records() {
		if err != nil {
			return err
		}
		if rows > 0 && r.at > last {
			gaps = append(gaps, r.at-last)
		}
		last = max(last, r.at)
		p.session(&r)
		if len(r.HashIDs) > 0 && t.ownIDs() {
			p.blocked++
			for _, size := range blockSizes {
				if (r.Input+size-1)/size == len(r.HashIDs) {
					fits[size]++
				}
			}
		}
		if rows++; rows == limit {
			break
		}
	}
	if rows == 0 {
		return t.problem("has no rows; want one request a line")
	}
	if rows >= 50 && len(gaps) > 0 && 2*(len(gaps)+1) < rows {
		slices.Sort(gaps)
		t.Tick = gaps[len(gaps)/2]
	}
	p.formerly = nil
	t.probed = p
	t.chooseBlocks(fits)
	return nil
}

// blockSizes are those that prefix caches use.
var blockSizes = []int{8, 16, 32, 64, 128, 256, 512, 1024, 2048}

// ownIDs says whether the format's rows bring ids along.
func (t *Trace) ownIDs() bool { return t.Format == "mooncake" || t.Format == "bailian" }

// chooseBlocks settles how many tokens a hash id stands for: what was asked
// for, else what the format says, else what nearly all rows agree on.
func (t *Trace) chooseBlocks(fits map[int]int) {
	p := &t.probed
	agreed := func(size int) bool { return p.blocked > 0 && fits[size]*20 >= p.blocked*19 }
	if !agreed(t.BlockTokens) {
		for _, size := range slices.Backward(blockSizes) {
			if agreed(size) {
				p.blocks = size
				t.BlockTokens = size
				break
			}
		}
	}
	if t.options.BlockTokens > 0 {
		if p.blocks = 0; p.blocked > 0 && t.BlockTokens != t.options.BlockTokens && agreed(t.BlockTokens) {
			p.blocks = t.BlockTokens
		}
		t.BlockTokens = t.options.BlockTokens
	}
	p.filled = fits[t.BlockTokens]
}

// session counts the turns of sessions that hold their history as they stand.
func (p *probed) session(r *record) {
	if r.fresh == 0 {
		return
	}
	if before, ok := p.formerly[r.Session]; ok {
		p.later++
		if r.fresh >= before {
			p.grown++
		}
	}
	p.formerly[r.Session] = r.fresh + r.Output
}

// countsHistory says whether the lengths of a session's turns, which by the
// format count only what is new, are seen to count the history too.
func (p *probed) countsHistory() bool { return p.later >= 5 && p.grown*10 >= p.later*9 }
