package generator

import (
	"context"
	"time"
)

// secondsACall is how long a closed loop's calls are taken to be where nobody
// knows.
const secondsACall = 5

// PeakRate is the highest rate of request starts that the plan may come to: as
// the model says it, or of a trace or dataset that of its busiest second as far
// as it can be read until ctx ends, or of a closed loop what its users do when
// calls take some seconds. 0 is unknown.
func (p *Plan) PeakRate(ctx context.Context) float64 {
	switch rate := p.peakQPS(); {
	case rate > 0:
		return rate
	case p.closed():
		return float64(p.Users()) / secondsACall
	}
	peak, n := 0, 0
	var second time.Duration
	for s, err := range p.Sessions() {
		if err != nil || ctx.Err() != nil {
			break
		}
		if now := s.Due.Truncate(time.Second); now != second {
			second, n = now, 0
		}
		n++
		peak = max(peak, n)
	}
	return float64(peak)
}
