package proxy

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"weir/proxy/wire"
	"weir/store/call"
)

// kept is what a Keep was given.
type kept struct {
	mu  sync.Mutex
	all []Content
}

func (k *kept) to(_ *call.Call, c Content) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, c)
}

// carry takes a call past a Keep, the response in pieces of so many bytes.
func carry(k *Keep, request, response []byte, coding string, size int) {
	c := k.begin()
	c.request(request, "")
	c.shape(&wire.Shape{Blocks: []wire.Block{{Role: wire.User, Bytes: len(request)}}})
	c.head(http.Header{"Content-Encoding": {coding}})
	buf := make([]byte, size) // used again, as the proxy's is
	for at := 0; at < len(response); at += size {
		c.response(buf[:copy(buf, response[at:])])
	}
	c.end(&call.Call{SpanID: [8]byte{1}, RequestBytes: int64(len(request)), ResponseBytes: int64(len(response))})
}

// encoded is text in a coding, each word flushed as a stream's events are.
func encoded(t *testing.T, coding, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w interface {
		Write(p []byte) (int, error)
		Flush() error
		Close() error
	}
	switch coding {
	case "":
		return []byte(text)
	case "gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	for _, word := range strings.SplitAfter(text, " ") {
		w.Write([]byte(word))
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestKeepReadsAResponseInAnyCodingAtAnySplit(t *testing.T) {
	const said = "data: one two three\n\n"
	for _, coding := range []string{"", "gzip", "br", "zstd"} {
		response := encoded(t, coding, said)
		for size := 1; size <= len(response); size++ {
			var got kept
			carry(&Keep{Bodies: true, To: got.to}, []byte("{}"), response, coding, size)
			plain, truncated := got.all[0].Response.Plain(defaultKeepLimit)
			if string(plain) != said || truncated || got.all[0].Response.Size != int64(len(response)) {
				t.Fatalf("%q, %d bytes a read: %q, truncated %v", coding, size, plain, truncated)
			}
		}
	}
}

func TestKeepBoundsWhatItHolds(t *testing.T) {
	long := strings.Repeat("0123456789", 100)
	for _, row := range []struct {
		sentence          string
		request, response string
		coding            string
		plain             string
		truncated         bool
	}{
		{"shorter than the limit", "{}", "abc", "", "abc", false},
		{"as long as the limit", "{}", long[:100], "", long[:100], false},
		{"longer than the limit", "{}", long, "", long[:100], true},
		{"few bytes that stand for many", "{}", long, "gzip", long[:100], true},
		{"a coding that nobody knows", "{}", "abc", "secret", "", true},
		{"not in the coding it says", "{}", "abcdefghijklmnopqrst", "gzip", "", true},
		{"no response", "{}", "", "gzip", "", false},
	} {
		var got kept
		k := &Keep{Bodies: true, Limit: 100, To: got.to}
		response := []byte(row.response)
		if row.coding == "gzip" && row.response == long {
			response = encoded(t, "gzip", row.response)
		}
		carry(k, []byte(row.request), response, row.coding, 7)
		plain, truncated := got.all[0].Response.Plain(100)
		if string(plain) != row.plain || truncated != row.truncated {
			t.Errorf("%s: %q, truncated %v", row.sentence, plain, truncated)
		}
		if k.held.Load() != 0 {
			t.Errorf("%s: %d bytes are not given back", row.sentence, k.held.Load())
		}
	}
	// A long request is not held by its beginning.
	var got kept
	carry(&Keep{Bodies: true, Limit: 100, To: got.to}, []byte(long), nil, "", 1)
	request := got.all[0].Request
	if plain, truncated := request.Plain(100); string(plain) != long[:100] || !truncated || cap(request.Bytes) > 200 {
		t.Errorf("of a long request %q, truncated %v, in %d bytes", plain, truncated, cap(request.Bytes))
	}
}

// Open streams together hold no more than the room; what finds none is cut, and
// none of it is missing in the middle.
func TestKeepCutsBodiesWhenTheRoomIsUsedUp(t *testing.T) {
	var got kept
	k := &Keep{Bodies: true, Room: 100, To: got.to}
	first, second := k.begin(), k.begin()
	ended := &call.Call{SpanID: [8]byte{1}, ResponseBytes: 120}
	first.response(bytes.Repeat([]byte("a"), 60))
	second.response(bytes.Repeat([]byte("b"), 30))
	second.response(bytes.Repeat([]byte("c"), 60)) // no room
	second.response(bytes.Repeat([]byte("d"), 5))  // room, but behind a gap
	first.end(ended)
	second.end(ended)
	third := k.begin()
	third.response(bytes.Repeat([]byte("e"), 100)) // the room is there again
	third.end(&call.Call{SpanID: [8]byte{1}, ResponseBytes: 100})
	var texts []string
	for _, c := range got.all {
		plain, truncated := c.Response.Plain(1000)
		texts = append(texts, fmt.Sprintf("%d of %c %v", len(plain), plain[0], truncated))
	}
	if diff := cmp.Diff([]string{"60 of a true", "30 of b true", "100 of e false"}, texts); diff != "" {
		t.Error(diff)
	}
}

func TestKeepTakesNoMoreThanWasAsked(t *testing.T) {
	var shapes kept
	carry(&Keep{To: shapes.to}, []byte("a secret"), []byte("another"), "", 3)
	if len(shapes.all) != 1 || shapes.all[0].Shape == nil || shapes.all[0].Request.Bytes != nil || shapes.all[0].Response.Bytes != nil {
		t.Errorf("of shapes alone %+v is kept", shapes.all)
	}
	var none *Keep
	carry(none, []byte("a secret"), []byte("another"), "", 3) // nothing happens

	var unnamed kept
	(&Keep{Bodies: true, To: unnamed.to}).begin().end(&call.Call{})     // a call without a span
	(&Keep{To: unnamed.to}).begin().end(&call.Call{SpanID: [8]byte{1}}) // one without a shape
	if len(unnamed.all) != 0 {
		t.Errorf("%+v is kept", unnamed.all)
	}
}

func TestKeepIsSharedByAllCalls(t *testing.T) {
	var got kept
	k := &Keep{Bodies: true, To: got.to}
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for range 50 {
				carry(k, []byte("request"), []byte("response"), "", 3)
			}
		})
	}
	calls.Wait()
	if len(got.all) != 400 || k.held.Load() != 0 {
		t.Errorf("%d calls kept, %d bytes not given back", len(got.all), k.held.Load())
	}
}

// BenchmarkKeepResponse is what keeping costs on a stream's way, a read at a
// time.
func BenchmarkKeepResponse(b *testing.B) {
	k := &Keep{Bodies: true, To: func(*call.Call, Content) {}}
	event := []byte(`data: {"choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}` + "\n\n")
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	c, n := k.begin(), 0
	for b.Loop() {
		if n++; n%500 == 0 {
			c.end(&call.Call{})
			c = k.begin()
		}
		c.response(event)
	}
}
