package report

import (
	"cmp"
	"maps"
	"slices"

	"weir/store/call"
)

// pair is one call as each side saw it; one of the two may be nil.
type pair struct {
	proxy, client *call.Call
}

// lead is the view that names the call: the proxy's where there is one.
func (p pair) lead() *call.Call {
	if p.proxy != nil {
		return p.proxy
	}
	return p.client
}

// outcome is how the call ended. The proxy's word counts, except where it saw
// nothing wrong, or only that the client left, and the client knows better.
func (p pair) outcome() call.Outcome {
	if p.proxy == nil {
		return p.client.Outcome
	}
	o := p.proxy.Outcome
	if p.client != nil && (o == call.OK || o == call.ClientGone) {
		return p.client.Outcome
	}
	return o
}

// impaired says whether the call was made worse on purpose. The proxy that did
// it knows; the client was told before what was meant for the call, and counts
// where no proxy speaks of it.
func (p pair) impaired() bool {
	if p.proxy != nil && len(p.proxy.Impaired) > 0 || p.client == nil {
		return p.proxy.Worsened()
	}
	return p.client.Worsened()
}

// failure is the view that explains a failed call.
func (p pair) failure() *call.Call {
	if p.proxy != nil && p.proxy.Outcome == p.outcome() {
		return p.proxy
	}
	return p.client
}

// pairer joins the generator's and the proxy's view of each call: the proxy's
// span is the child of the client's. The spans of one call end within moments
// of each other, so that only few are held at a time.
type pairer struct {
	waiting map[[8]byte]*call.Call // by the client's span id, either side
}

// add takes one view; ok says that p is complete. A proxy's span without a
// parent, or one whose parent never comes, has no client view.
func (j *pairer) add(c *call.Call) (p pair, ok bool) {
	key := c.SpanID
	if c.Side != call.Client {
		key = c.ParentSpan
		if key == ([8]byte{}) {
			return pair{proxy: c}, true
		}
	}
	other, found := j.waiting[key]
	if !found || other.Side == c.Side {
		// Two attempts below one client span are two calls: the first one
		// leaves as it is, the second waits.
		if j.waiting == nil {
			j.waiting = map[[8]byte]*call.Call{}
		}
		j.waiting[key] = light(c)
		if found {
			return alone(other), true
		}
		return pair{}, false
	}
	delete(j.waiting, key)
	if c.Side == call.Client {
		return pair{proxy: other, client: c}, true
	}
	return pair{proxy: c, client: other}, true
}

// rest gives the views that found no other side, in the order of their arrival.
func (j *pairer) rest() []pair {
	left := slices.SortedFunc(maps.Values(j.waiting), func(a, b *call.Call) int {
		return cmp.Or(cmp.Compare(a.Arrived, b.Arrived), slices.Compare(a.SpanID[:], b.SpanID[:]))
	})
	pairs := make([]pair, len(left))
	for i, c := range left {
		pairs[i] = alone(c)
	}
	return pairs
}

func alone(c *call.Call) pair {
	if c.Side == call.Client {
		return pair{client: c}
	}
	return pair{proxy: c}
}

// light is the call without what no table needs, for those that are held.
func light(c *call.Call) *call.Call {
	l := *c
	l.Timeline = nil
	return &l
}
