package generator

import "cmp"

// recent remembers what was last kept under a hash, of the last most hashes at
// least, and twice as many at most. The zero recent is empty.
type recent[V any] struct {
	most       int // 0: recentHashes
	young, old map[uint64]V
	forgot     bool // something: what is not found may have been there
}

const recentHashes = 500_000

// get finds what is kept. What was found is not soon forgotten.
func (r *recent[V]) get(h uint64) (V, bool) {
	v, ok := r.young[h]
	if ok {
		return v, true
	}
	if v, ok = r.old[h]; ok {
		r.put(h, v)
	}
	return v, ok
}

func (r *recent[V]) put(h uint64, v V) {
	if _, there := r.young[h]; !there && len(r.young) >= cmp.Or(r.most, recentHashes) {
		// The room of what is forgotten is used again.
		r.forgot = r.forgot || len(r.old) > 0
		clear(r.old)
		r.young, r.old = r.old, r.young
	}
	if r.young == nil {
		r.young = map[uint64]V{}
	}
	r.young[h] = v
}
