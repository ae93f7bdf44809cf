package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"testing"

	"weir/store/call"
)

const (
	codedQuestion = `{"model":"m-coded","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`
	codedAnswer   = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1,\"total_tokens\":6}}\n\ndata: [DONE]\n\n"
)

// Codex sends zstd, and may have other codings back. A copy is decoded; what
// passes stays as it is, with its length and its coding.
func TestZstdRequestBodiesPassAndAreReadAndCodedAnswersPassWithTheirLength(t *testing.T) {
	for _, coding := range []string{"zstd", "gzip", "br", "deflate"} {
		t.Run(coding, func(t *testing.T) {
			question, answer := encode(coding, []byte(codedQuestion)), encode(coding, []byte(codedAnswer))
			var came []byte
			up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
				came, _ = io.ReadAll(r.Body)
				if got := r.Header.Get("Content-Encoding"); got != coding || r.ContentLength != int64(len(question)) {
					t.Errorf("it came as %q with %d bytes announced, want %q and %d", got, r.ContentLength, coding, len(question))
				}
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("Content-Encoding", coding)
				w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
				w.Write(answer)
			})
			s := start(t, up, nil)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/chat/completions", bytes.NewReader(question))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Encoding", coding)
			req.Header.Set("Accept-Encoding", coding)
			resp, err := s.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || !bytes.Equal(got, answer) || resp.Header.Get("Content-Encoding") != coding || resp.ContentLength != int64(len(answer)) {
				t.Errorf("%d of %d bytes as %q with %d announced, %v", len(got), len(answer), resp.Header.Get("Content-Encoding"), resp.ContentLength, err)
			}
			if !bytes.Equal(came, question) {
				t.Error("the request's bytes were changed")
			}
			c := s.call(t, 1)
			if c.Request.Model != "m-coded" || !c.FirstToken.Reached() || c.Usage.Output.N != 1 || c.Outcome != call.OK {
				t.Errorf("recorded %v, model %q, usage %+v", c, c.Request.Model, c.Usage)
			}
		})
	}
}

func TestBothAuthorizationAndXApiKeyPassAsTheyAre(t *testing.T) {
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		if a, k := r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"); a != "Bearer one-key" || k != "another-key" {
			t.Errorf("Authorization %q, X-Api-Key %q", a, k)
		}
		io.WriteString(w, codedAnswer)
	})
	s := start(t, up, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/messages", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer one-key")
	req.Header.Set("X-Api-Key", "another-key")
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	s.call(t, 1)
}
