package generator

import (
	"strings"
	"testing"

	"weir/proxy/wire"
)

// What lies between an answer's end and the next turn's send: it is part of
// that turn's lag.
func BenchmarkNextTurn(b *testing.B) {
	p := &Plan{Model: quickstart(b), Seed: 1}
	var s Session
	for next := range p.Sessions() {
		if len(next.Turns) > 5 {
			s = next
			break
		}
	}
	words := strings.Repeat("an answer of some words that the model gave ", 90)
	for b.Loop() {
		b.StopTimer()
		c, _, err := p.converse(s)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		for turn := 1; turn < len(s.Turns); turn++ {
			a := &answer{}
			a.text.WriteString(words)
			if _, err := c.next(turn, a, wire.Usage{}); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*(len(s.Turns)-1)), "ns/turn")
}
