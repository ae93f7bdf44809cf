package generator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"weir/store/call"
)

// How often the preflight asks at most, how long it waits before it asks again
// (twice as long each time), and for how long it lets the endpoint make it wait.
const (
	preflightTries   = 4
	preflightBackOff = 500 * time.Millisecond
	longestBackOff   = 10 * time.Second
)

// passes says whether what went wrong may go well the next time: an endpoint
// that fails now and then is still one to send a load to.
func passes(m *call.Call, err error) bool {
	switch m.Outcome {
	case call.RateLimited, call.Overloaded, call.Truncated, call.StreamError:
		return true
	case call.Unreachable:
		return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	case call.ServerError:
		if m.Status == 501 || m.Status == 505 {
			return false
		}
		// weir's own word for an address that is wrong.
		for _, lasting := range []string{"connection refused", "no such host", "tls: ", "x509: "} {
			if strings.Contains(m.ErrorMessage, lasting) {
				return false
			}
		}
		return true
	}
	return false
}

// pause waits before the preflight asks again, after so many tries. It is false
// where there is no next try: they are used up, the endpoint wants to be left
// alone for longer than is worth waiting, or ctx has ended.
func (r *Run) pause(ctx context.Context, tries int, of dialect, m *call.Call) bool {
	wait := r.backOff
	if wait == 0 {
		wait = preflightBackOff
	}
	wait = max(wait<<(tries-1), m.RetryAfter)
	if tries >= preflightTries || wait > longestBackOff {
		return false
	}
	if r.OnRetry != nil {
		r.OnRetry(fmt.Sprintf("preflight: %s: try %d of %d: %s; the next one in %s", of, tries, preflightTries, wentWrong(m), wait))
	}
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}

// wentWrong is how a call failed, in a few words.
func wentWrong(m *call.Call) string {
	what := strings.ReplaceAll(string(m.Outcome), "_", " ")
	if m.Status >= 400 {
		what = fmt.Sprintf("status %d", m.Status)
	}
	if m.ErrorMessage != "" {
		what += ": " + m.ErrorMessage
	}
	return what
}
