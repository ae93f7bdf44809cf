package report

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/store/call"
)

func TestOneCallsAccount(t *testing.T) {
	c := spans(seen("长上下文RAG", 400), 7, 6)
	c.Run, c.Session, c.Turn, c.ScenarioFrom = "7f3a", "s-12", 2, "header"
	c.Method, c.Path, c.Host, c.Port = "POST", "/v1/chat/completions", "127.0.0.1", 9001
	c.Labels = map[string]string{"team": "blue"}
	c.ClientName, c.ClientVersion, c.KeyFingerprint = "claude-code", "2.1.332", "00c0ffee"
	c.Body = c.Arrived + 2*millisecond
	c.Admitted = c.Arrived + 120*millisecond
	c.Connected = c.Arrived + 150*millisecond
	c.Sent = c.Arrived + 151*millisecond
	c.Done = c.LastToken.Received + 20*millisecond
	c.DNS, c.TLS, c.WriteBlocked = 3*time.Millisecond, 20*time.Millisecond, 200*time.Microsecond
	c.Gaps = call.Gaps{N: 10, P50: 10 * time.Millisecond, P99: 11 * time.Millisecond, Longest: 11 * time.Millisecond}
	c.Finish = "stop"
	c.Timeline = timeline(400*time.Millisecond, 10*time.Millisecond, 40*time.Millisecond, 50*time.Millisecond)

	for name, draw := range map[string]func(*bytes.Buffer){
		"account.txt": func(b *bytes.Buffer) { Explain(b, c, clientOf(c, 6, 1), Style{Width: 100}) },
		"account-failed.txt": func(b *bytes.Buffer) {
			f := failedCall("short_chat", call.RateLimited, 429, "Rate limit reached: 请求过于频繁")
			f.ErrorType, f.RetryAfter, f.ErrorBody = "rate_limit_error", 2*time.Second, `{"error":{"message":"Rate limit reached: 请求过于频繁"}}`
			Explain(b, f, nil, Style{Width: 100})
		},
		"account-in-flight.txt": func(b *bytes.Buffer) {
			f := seen("short_chat", 400)
			f.Outcome, f.Done, f.LastToken = "", 0, call.Mark{}
			Explain(b, f, nil, Style{Width: 100})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			draw(&b)
			golden(t, name, dates.ReplaceAll(b.Bytes(), []byte("DATE")))
		})
	}
}

// timeline packs events as call.Timeline describes it: all of one byte of text.
func timeline(gaps ...time.Duration) call.Timeline {
	var t call.Timeline
	for _, gap := range gaps {
		t = binary.AppendUvarint(t, uint64(gap.Microseconds()))
		t = binary.AppendUvarint(t, 1<<4|1)
	}
	return t
}

func TestArrivalsAreDrawnWhereEventsCame(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		sentence string
		timeline call.Timeline
		want     string
	}{
		{"no stream, no line", nil, ""},
		{"one event has no rhythm", timeline(5 * ms), ""},
		{"evenly spaced events are a level line", timeline(400*ms, 10*ms, 10*ms, 10*ms), "arrivals  ████  a column is 7.5ms, at most 1 event\n"},
		{"a pause is a gap, a burst is high", timeline(400*ms, 0, 0, 0, 90*ms, 10*ms), "arrivals  █    ▄  a column is 17ms, at most 4 events\n"},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			var b bytes.Buffer
			arrivals(&b, c.timeline, Style{})
			if diff := cmp.Diff(c.want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestListsOfCalls(t *testing.T) {
	calls := []*call.Call{spans(seen("长上下文RAG", 400), 7, 6), spans(failedCall("short_chat", call.RateLimited, 429, "slow down"), 8, 0)}
	connection := func(span byte, o call.Outcome, status int) *call.Call {
		c := spans(failedCall("codex", o, status, ""), span, 0)
		c.Purpose, c.Request.Model = call.PurposeConnection, ""
		return c
	}
	prewarm := spans(seen("codex", 5), 12, 9)
	prewarm.Purpose = call.PurposePrewarm
	calls = append(calls, connection(9, call.OK, 101), connection(10, call.ClientError, 404), connection(11, "", 101), prewarm)
	for name, write := range map[string]func(*bytes.Buffer){
		"list.txt": func(b *bytes.Buffer) { List(b, calls, Style{}) },
		"list.tsv": func(b *bytes.Buffer) {
			for _, c := range calls {
				ListRow(b, c)
			}
		},
		"follow.txt": func(b *bytes.Buffer) {
			for _, c := range calls {
				ListLine(b, c, Style{})
				ListLine(b, c, Style{Width: 80})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			write(&b)
			golden(t, name, dates.ReplaceAll(b.Bytes(), []byte("DATE")))
		})
	}
}
