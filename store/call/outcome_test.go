package call

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

func TestOutcomes(t *testing.T) {
	stream := wire.Head{Stream: true}
	full := data(chatRole, chatHel, chatLo, chatStop, chatUsage, done)
	for _, row := range []struct {
		sentence string
		script   script
		outcome  Outcome
		absence  Absence
	}{
		{"complete stream → ok", script{reads: []read{{10, full}}}, OK, ""},
		{"200 with an error event → stream_error", script{reads: []read{{10, data(`{"error":{"message":"no GPU","type":"server_error"}}`)}}}, StreamError, AbsentStreamError},
		{"error event after tokens → stream_error with a first token", script{reads: []read{{10, data(chatHel, `{"error":"boom"}`, done)}}}, StreamError, ""},
		{"error event, then the client leaves → stream_error", script{reads: []read{{10, data(`{"error":"boom"}`)}}, end: EndClientGone}, StreamError, AbsentStreamError},
		{"JSON error instead of the stream asked for → stream_error", script{header: document, reads: []read{{10, `{"error":{"message":"no"}}`}}}, StreamError, AbsentStreamError},
		{"clean end without [DONE] → truncated", script{reads: []read{{10, data(chatHel, chatStop)}}}, Truncated, ""},
		{"clean end before any event → truncated", script{}, Truncated, AbsentTruncated},
		{"only comments → truncated", script{reads: []read{{10, ": PING\n\n"}}}, Truncated, AbsentTruncated},
		{"[DONE] without any finish reason → truncated", script{reads: []read{{10, data(chatHel, done)}}}, Truncated, ""},
		{"broken in its middle → truncated", script{reads: []read{{10, data(chatHel)}}, end: EndBroken}, Truncated, ""},
		{"broken after [DONE] → truncated", script{reads: []read{{10, full}}, end: EndBroken}, Truncated, ""},
		{"client leaves in the middle → client_gone", script{reads: []read{{10, data(chatHel)}}, end: EndClientGone}, ClientGone, ""},
		{"client leaves before the first token → client_gone", script{reads: []read{{10, data(chatRole)}}, end: EndClientGone}, ClientGone, AbsentClientGone},
		{"client leaves after [DONE] → ok", script{reads: []read{{10, full}}, end: EndClientGone}, OK, ""},
		{"deadline in the middle → timeout", script{reads: []read{{10, data(chatRole)}}, end: EndTimeout}, Timeout, AbsentTimeout},
		{"deadline after [DONE] → ok", script{reads: []read{{10, full}}, end: EndTimeout}, OK, ""},
		{"last event lacks its blank line, clean end → ok", script{reads: []read{{10, strings.TrimRight(full, "\n")}}}, OK, ""},
		{"complete without a token → ok, empty", script{reads: []read{{10, data(chatRole, chatStop, done)}}}, OK, AbsentEmpty},
		{"no event can be read → malformed", script{reads: []read{{10, "data: <html>\n\ndata: oops\n\n"}}}, Malformed, AbsentEmpty},
		{"302 → malformed", script{status: 302, header: http.Header{}}, Malformed, AbsentNotStreamed},
		{"429 → rate_limited", script{status: 429}, RateLimited, AbsentHTTPError},
		{"429, and the client leaves at once → rate_limited", script{status: 429, end: EndClientGone}, RateLimited, AbsentHTTPError},
		{"401 → auth", script{status: 401}, Auth, AbsentHTTPError},
		{"403 → auth", script{status: 403}, Auth, AbsentHTTPError},
		{"503 → overloaded", script{status: 503}, Overloaded, AbsentHTTPError},
		{"529 → overloaded", script{status: 529}, Overloaded, AbsentHTTPError},
		{"404 → client_error", script{status: 404}, ClientError, AbsentHTTPError},
		{"502 → server_error", script{status: 502}, ServerError, AbsentHTTPError},
		{"whole answer, client leaves after its announced length → ok", script{
			request: wire.Head{Model: "m"}, header: http.Header{"Content-Type": {"application/json"}, "Content-Length": {"66"}},
			reads: []read{{10, `{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]} `}}, end: EndClientGone}, OK, AbsentNotStreamed},
		{"whole answer cut → truncated", script{request: wire.Head{Model: "m"}, header: document, reads: []read{{10, `{"choices":[{"mess`}}, end: EndBroken}, Truncated, AbsentTruncated},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			s := row.script
			s.api = wire.Chat
			if s.header == nil {
				s.header = sse
			}
			if s.request.Model == "" {
				s.request = stream
			}
			c := s.run()
			if c.Outcome != row.outcome || c.NoFirstToken != row.absence {
				t.Errorf("got %s, no first token because %q; want %s, %q", c.Outcome, c.NoFirstToken, row.outcome, row.absence)
			}
			if (c.Outcome == OK) != (c.ErrorType == "") {
				t.Errorf("outcome %s with error type %q", c.Outcome, c.ErrorType)
			}
		})
	}
}

func TestStreamsOfOtherDialectsNeedTheirOwnTerminalEvent(t *testing.T) {
	for _, row := range []struct {
		sentence string
		api      wire.API
		body     string
		outcome  Outcome
	}{
		{"messages without message_stop → truncated", wire.Messages, messageStart + textDelta("a") + messageDelta, Truncated},
		{"messages with message_stop but no stop reason → truncated", wire.Messages, messageStart + textDelta("a") + messageStop, Truncated},
		{"messages with an error event → stream_error", wire.Messages, messageStart + event("error", `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`), StreamError},
		{"responses without response.completed → truncated", wire.Responses, event("response.output_text.delta", `{"type":"response.output_text.delta","delta":"a"}`), Truncated},
		{"responses that failed → stream_error", wire.Responses, event("response.failed", `{"type":"response.failed","response":{"id":"r","error":{"code":"server_error","message":"x"}}}`), StreamError},
		{"responses cut at the token limit → ok", wire.Responses, event("response.incomplete", `{"type":"response.incomplete","response":{"id":"r","incomplete_details":{"reason":"max_output_tokens"}}}`), OK},
		{"gemini without finishReason → truncated", wire.Gemini, data(`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`), Truncated},
		{"gemini with a blocked prompt → ok", wire.Gemini, data(`{"promptFeedback":{"blockReason":"SAFETY"}}`), OK},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			c := script{api: row.api, request: wire.Head{Stream: true}, header: sse, reads: []read{{10, row.body}}}.run()
			if c.Outcome != row.outcome {
				t.Errorf("got %s, want %s", c.Outcome, row.outcome)
			}
		})
	}
}

func TestCallsWithoutAResponse(t *testing.T) {
	dial := func(err error) error { return fmt.Errorf("ask upstream: %w", &net.OpError{Op: "dial", Err: err}) }
	for _, row := range []struct {
		sentence string
		end      End
		err      error
		outcome  Outcome
		absence  Absence
		class    string
	}{
		{"the shaper refuses", EndRefused, errors.New("queue full"), Refused, AbsentRefused, "refused"},
		{"no such host", EndUnreachable, dial(&net.DNSError{Err: "no such host", Name: "x"}), Unreachable, AbsentUnreachable, "dns_error"},
		{"nobody listens", EndUnreachable, dial(syscall.ECONNREFUSED), Unreachable, AbsentUnreachable, "connection_refused"},
		{"no file left → says nothing of the endpoint", EndUnreachable, dial(os.NewSyscallError("socket", syscall.EMFILE)), Refused, AbsentRefused, "open_files"},
		{"nor has any process one", EndUnreachable, dial(os.NewSyscallError("socket", syscall.ENFILE)), Refused, AbsentRefused, "open_files"},
		{"no port left", EndUnreachable, dial(os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)), Refused, AbsentRefused, "local_ports"},
		{"a certificate of nobody", EndUnreachable, x509.UnknownAuthorityError{}, Unreachable, AbsentUnreachable, "tls_error"},
		{"reset before the headers", EndBroken, syscall.ECONNRESET, Truncated, AbsentTruncated, "truncated"},
		{"the caller leaves the queue", EndClientGone, context.Canceled, ClientGone, AbsentClientGone, "client_gone"},
		{"a deadline in the wait for headers", EndTimeout, context.DeadlineExceeded, Timeout, AbsentTimeout, "timeout"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			c, m := (&script{api: wire.Chat}).start()
			m.End(row.end, row.err, t0+9*ms)
			m.End(EndClean, nil, t0+99*ms) // a second one does nothing
			got := []any{c.Outcome, c.NoFirstToken, c.ErrorType, c.ErrorMessage, c.Done, c.UsageSource}
			want := []any{row.outcome, row.absence, row.class, row.err.Error(), t0 + 9*ms, UsageSource("")}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOperationsThatGenerateNothing(t *testing.T) {
	for _, row := range []struct {
		sentence  string
		operation wire.Operation
		api       wire.API
		status    int
		end       End
		outcome   Outcome
	}{
		{"models", wire.OpModels, "", 200, EndClean, OK},
		{"count_tokens", wire.OpCountTokens, wire.Messages, 200, EndClean, OK},
		{"a path that weir does not know", wire.OpOther, "", 204, EndClean, OK},
		{"a path that weir does not know, 404", wire.OpOther, "", 404, EndClean, ClientError},
		{"embeddings, cut", wire.OpEmbeddings, "", 200, EndBroken, Truncated},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			c := &Call{Operation: row.operation}
			m := NewMeter(c, wire.For(row.api))
			m.Begin(row.status, document, t0)
			m.Observe([]byte(`{"input_tokens": 5}`), t0+ms, t0+ms)
			m.End(row.end, nil, t0+2*ms)
			if c.Outcome != row.outcome || c.NoFirstToken != AbsentOperation || c.UsageSource != "" || c.ResponseBytes != 19 {
				t.Errorf("got %s, %q, usage %q, %d bytes; want %s", c.Outcome, c.NoFirstToken, c.UsageSource, c.ResponseBytes, row.outcome)
			}
		})
	}
}
