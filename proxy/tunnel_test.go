package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"weir/proxy/wire"
	"weir/store/call"
)

// Codex takes a 426 as final, and asks 7 times after any other failure.
func TestUpgradeThatTheUpstreamDoesNotKnowIsAnswered426(t *testing.T) {
	for _, row := range []struct {
		sentence string
		path     string
		upgrade  string
		status   int
		want     int
		outcome  call.Outcome
	}{
		{"an unknown path", "/v1/responses", "websocket", 404, 426, call.ClientError},
		{"an unknown method", "/v1/responses", "WebSocket", 405, 426, call.ClientError},
		{"not implemented", "/v1/responses", "websocket", 501, 426, call.ServerError},
		{"taken for a plain GET", "/v1/responses", "websocket", 200, 426, call.OK},
		{"426 of its own", "/v1/responses", "websocket", 426, 426, call.ClientError},
		{"a fault in the request", "/v1/responses", "websocket", 400, 400, call.ClientError},
		{"a wrong key", "/v1/responses", "websocket", 401, 401, call.Auth},
		{"a key without rights", "/v1/responses", "websocket", 403, 403, call.Auth},
		{"too many", "/v1/responses", "websocket", 429, 429, call.RateLimited},
		{"a broken upstream", "/v1/responses", "websocket", 500, 500, call.ServerError},
		{"another API's WebSocket", "/v1/realtime", "websocket", 404, 404, call.ClientError},
		{"another protocol", "/v1/responses", "h2c", 404, 404, call.ClientError},
		{"no upgrade", "/v1/responses", "", 404, 404, call.ClientError},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-From", "upstream")
				w.WriteHeader(row.status)
				io.WriteString(w, `{"error":{"message":"said by the upstream","type":"t"}}`)
			})
			s := start(t, up, nil)
			req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+row.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if row.upgrade != "" {
				req.Header.Set("Connection", "keep-alive, Upgrade")
				req.Header.Set("Upgrade", row.upgrade)
			}
			resp, err := s.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != row.want {
				t.Errorf("%d %s %v, want status %d", resp.StatusCode, body, err, row.want)
			}
			e, ok := wire.For(wire.Responses).ParseError(body)
			mended := row.want == 426 && row.status != 426
			if mended {
				if want := fmt.Sprintf("the upstream up has no WebSocket here (it answered %d)", row.status); !ok || !strings.Contains(e.Message, want) {
					t.Errorf("said %s, want %q", body, want)
				}
				if resp.Header.Get("Upgrade") != "HTTP/1.1" || resp.Header.Get("Connection") != "Upgrade" {
					t.Errorf("headers %v, want a protocol to upgrade to", resp.Header)
				}
			} else if e.Message != "said by the upstream" || resp.Header.Get("X-From") != "upstream" {
				t.Errorf("the upstream's answer came as %v %s", resp.Header, body)
			}
			c := s.call(t, 1)
			if c.Status != row.status || c.Outcome != row.outcome {
				t.Errorf("recorded %v with status %d, want %s with %d", c, c.Status, row.outcome, row.status)
			}
			if row.status >= 400 && c.ErrorMessage != "said by the upstream" {
				t.Errorf("recorded %q", c.ErrorMessage)
			}
		})
	}
}

// An upstream that takes no notice of the upgrade may answer with a stream that
// does not end.
func TestUpgradeAnsweredByAnEndlessStreamIsAnswered426(t *testing.T) {
	left := make(chan struct{})
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(left)
	})
	s := start(t, up, nil)
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/v1/responses", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-left
	if resp.StatusCode != 426 {
		t.Errorf("status %d, want 426", resp.StatusCode)
	}
}
