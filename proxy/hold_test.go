package proxy

import (
	"io"
	"net/http"
	"testing"
	"time"

	"weir/proxy/wire"
	"weir/store/call"
)

func TestAfterAHoldFewCallsAreSentInVainAndNoGoodputIsLost(t *testing.T) {
	const long = 2 * time.Minute
	gentle, _ := servedIn(t, "concurrency=9 retry=5 wait=1h", long) // one more than the endpoint takes
	served, refused := servedIn(t, "concurrency=24 retry=5 wait=1h", long)
	t.Logf("%d served, %d refused; with one too many in flight %d served", served, refused, gentle)
	if refused > served*2/3 || float64(served) < 0.95*float64(gentle) {
		t.Errorf("%d refused for %d served, want two thirds at most, and 95 %% of %d", refused, served, gentle)
	}
}

// An overloaded endpoint may say so inside a 200, before anything else.
func TestARefusalInsideAStreamHoldsTheLane(t *testing.T) {
	refuse := `event: error` + "\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n"
	begun := "event: message_start\n" + `data: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}` + "\n\n"
	word := "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}` + "\n\n"
	for _, row := range []struct {
		name, stream, reason string
	}{
		{"as its first event", refuse, "529"},
		{"before a word", begun + refuse, "529"},
		{"behind a word it is a stream that broke", begun + word + refuse, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := shapedBy(t, "concurrency=adaptive", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, row.stream)
			})
			resp, err := s.post(t, t.Context(), wire.Messages)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if c := s.call(t, 1); c.Status != 200 || c.Outcome != call.StreamError {
				t.Fatalf("%d %s", c.Status, c.Outcome)
			}
			held := ""
			for _, l := range s.Shaper.Lanes() {
				held += l.HoldReason
			}
			if held != row.reason {
				t.Errorf("held for %q, want %q", held, row.reason)
			}
		})
	}
}
