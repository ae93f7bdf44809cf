package sim

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"weir/proxy/wire"
)

// swift is an engine that is always behind, so that only the work counts.
var swift = EngineConfig{Slots: 256, Step: 1, Chunk: 100_000, TokensPerStep: 4, KVTokens: 1 << 40}

// streamOf is the body of a request for a stream of so many events.
func streamOf(b *testing.B, api wire.API, events int) (path string, body []byte) {
	r := request(api, true)
	r.MaxTokens = wire.N(int64(events) * int64(swift.TokensPerStep))
	body, err := wire.For(api).AppendRequest(nil, r)
	if err != nil {
		b.Fatal(err)
	}
	return wire.For(api).Path(r), body
}

// nowhere is a response that nobody reads.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) WriteHeader(int)             {}
func (n nowhere) Flush()                      {}

// BenchmarkEvent is the endpoint's own work for an event, in streams of 300:
// the engine's step, the handler's waking, the bytes.
func BenchmarkEvent(b *testing.B) {
	const events = 300
	for _, api := range apis {
		b.Run(string(api), func(b *testing.B) {
			s, err := New(Config{Engine: swift})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			path, body := streamOf(b, api, events)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				s.ServeHTTP(nowhere{http.Header{}}, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events, "ns/event")
		})
	}
}

// BenchmarkLoopback is the same over HTTP with a client that reads, 64 streams
// at a time.
func BenchmarkLoopback(b *testing.B) {
	const events, streams = 300, 64
	s, err := New(Config{Engine: swift})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer s.Close()
	defer server.Close()
	path, body := streamOf(b, wire.Chat, events)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: streams}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	b.SetParallelism(streams / 2)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			resp, err := client.Post(server.URL+path, "application/json", bytes.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events, "ns/event")
}

// BenchmarkNew is what starting an endpoint costs: its words are written ahead.
func BenchmarkNew(b *testing.B) {
	for range b.N {
		s, err := New(Config{})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
