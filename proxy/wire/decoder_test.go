package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
)

// flusher is a compressor that sends on what it holds.
type flusher interface {
	io.WriteCloser
	Flush() error
}

// encoders are one a coding, and two for deflate, whose name means either.
var encoders = []struct {
	name, coding string
	over         func(io.Writer) flusher
}{
	{"gzip", "gzip", func(w io.Writer) flusher { return gzip.NewWriter(w) }},
	{"zlib", "deflate", func(w io.Writer) flusher { return zlib.NewWriter(w) }},
	{"raw deflate", "deflate", func(w io.Writer) flusher { z, _ := flate.NewWriter(w, 6); return z }},
	{"br", "br", func(w io.Writer) flusher { return brotli.NewWriter(w) }},
	{"zstd", "zstd", func(w io.Writer) flusher { z, _ := zstd.NewWriter(w); return z }},
}

// encode compresses text; each piece is flushed, as a streaming server does.
func encode(t testing.TB, over func(io.Writer) flusher, pieces ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := over(&b)
	for _, p := range pieces {
		if _, err := io.WriteString(z, p); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// decode feeds body step bytes at a time.
func decode(coding string, body []byte, step int) (string, error) {
	d, err := NewDecoder(coding)
	if err != nil {
		return "", err
	}
	defer d.Close()
	var out []byte
	for len(body) > 0 {
		n := min(step, len(body))
		p, err := d.Decode(body[:n])
		out = append(out, p...)
		if err != nil {
			return string(out), err
		}
		body = body[n:]
	}
	return string(out), nil
}

func TestDecoderGivesTheSameAtAnySplit(t *testing.T) {
	defer goleak.VerifyNone(t)
	var pieces []string
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		pieces = append(pieces, fmt.Sprintf("data: {\"n\":%d,\"text\":\"第%x\"}\n\n", i, rng.Uint64()))
	}
	want := strings.Join(pieces, "")
	for _, e := range encoders {
		body := encode(t, e.over, pieces...)
		for _, step := range []int{1, 2, 7, 100, len(body)} {
			if got, err := decode(e.coding, body, step); err != nil || got != want {
				t.Errorf("%s, %d bytes at a time: %v, %d bytes of %d", e.name, step, err, len(got), len(want))
			}
		}
	}
}

// What a server flushed is seen when it came, not when more comes.
func TestDecoderGivesAtOnceWhatWasFlushed(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, e := range encoders {
		d, err := NewDecoder(e.coding)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		z := e.over(&b)
		for i := range 20 {
			piece := fmt.Sprintf("data: event %d\n\n", i)
			_, _ = io.WriteString(z, piece)
			_ = z.Flush()
			got, err := d.Decode(b.Bytes())
			if string(got) != piece || err != nil {
				t.Errorf("%s, event %d: %q, %v", e.name, i, got, err)
			}
			b.Reset()
		}
		d.Close()
	}
}

// The end of a stream need not be waited for: trailers may never come.
func TestDecoderGivesTheLastBlockBeforeTheTrailer(t *testing.T) {
	for _, e := range encoders {
		if e.name == "br" || e.name == "zstd" {
			continue // they have none that holds anything back
		}
		body := encode(t, e.over, "data: a\n\n")
		trailer := map[string]int{"gzip": 8, "zlib": 4}[e.name]
		if got, err := decode(e.coding, body[:len(body)-trailer], 1); got != "data: a\n\n" || err != nil {
			t.Errorf("%s: %q, %v", e.name, got, err)
		}
	}
}

func TestDecoderUndoesSeveralCodingsInTurn(t *testing.T) {
	defer goleak.VerifyNone(t)
	byName := map[string]func(io.Writer) flusher{}
	for _, e := range encoders {
		byName[e.name] = e.over
	}
	for _, header := range []string{"gzip, br", "br,gzip", "zstd, gzip", "gzip, identity, zstd", "x-gzip, BR, gzip"} {
		body := []byte("data: a\n\n")
		for _, c := range strings.Split(strings.ToLower(header), ",") {
			if over := byName[strings.TrimPrefix(strings.TrimSpace(c), "x-")]; over != nil {
				body = encode(t, over, string(body))
			}
		}
		for _, step := range []int{1, len(body)} {
			if got, err := decode(header, body, step); got != "data: a\n\n" || err != nil {
				t.Errorf("%s, %d bytes at a time: %q, %v", header, step, got, err)
			}
		}
	}
}

func TestDecoderReadsAllThatGzipMayBe(t *testing.T) {
	var named bytes.Buffer
	z := gzip.NewWriter(&named)
	z.Name, z.Comment, z.Extra = strings.Repeat("n", 5000), "a comment", []byte("extra")
	_, _ = io.WriteString(z, "a")
	_ = z.Close()
	plain := encode(t, encoders[0].over, "b")
	for name, row := range map[string]struct {
		body []byte
		want string
	}{
		"a header with name, comment and extra": {named.Bytes(), "a"},
		"several members":                       {append(bytes.Clone(named.Bytes()), plain...), "ab"},
		"an empty member":                       {append(encode(t, encoders[0].over), plain...), "b"},
	} {
		for _, step := range []int{1, 4096, 1 << 20} {
			if got, err := decode("gzip", row.body, step); got != row.want || err != nil {
				t.Errorf("%s, %d bytes at a time: %q, %v", name, step, got, err)
			}
		}
	}
}

func TestDecoderKnowsItsCodings(t *testing.T) {
	for _, coding := range []string{"", "identity", " Identity ", ","} {
		if d, err := NewDecoder(coding); d != nil || err != nil {
			t.Errorf("%q: %v, %v; want none", coding, d, err)
		}
	}
	for coding, want := range map[string]string{
		"compress":               `content encoding "compress": want gzip, deflate, br or zstd`,
		"gzip, snappy":           `content encoding "snappy": want gzip, deflate, br or zstd`,
		"gzip, gzip, gzip, gzip": `content encoding "gzip, gzip, gzip, gzip": 4 codings over each other: want at most 3`,
	} {
		if d, err := NewDecoder(coding); d != nil || err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v", coding, d, err)
		}
	}
}

func TestDecoderEndsAtWhatIsBroken(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, e := range encoders {
		for name, body := range map[string][]byte{
			"other bytes":          []byte("\x00data: this was never encoded, by any coding\n\n"),
			"broken in the middle": append(encode(t, e.over, strings.Repeat("a", 10), "b")[:12], "\xff\xfe\xfd and so on, and on, and on"...),
		} {
			d, err := NewDecoder(e.coding)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				_, err = d.Decode(body)
			}
			if err == nil {
				t.Errorf("%s, %s: no error", e.name, name)
			}
			if out, again := d.Decode(body); len(out) > 0 || again == nil {
				t.Errorf("%s, %s: after the error %q, %v", e.name, name, out, again)
			}
			d.Close()
		}
	}
}

func TestDecoderStopsAtABomb(t *testing.T) {
	defer goleak.VerifyNone(t)
	bomb := make([]byte, maxDecoded+1<<20)
	for _, e := range encoders {
		var b bytes.Buffer
		z := e.over(&b)
		_, _ = z.Write(bomb)
		_ = z.Close()
		got, err := decode(e.coding, b.Bytes(), b.Len())
		if err == nil || len(got) > maxDecoded+64<<10 {
			t.Errorf("%s: %d bytes stand for %d; gave %d and %v", e.name, b.Len(), len(bomb), len(got), err)
		}
	}
}

// A bomb in a bomb: what the inner coding reads is bounded too, though it has
// no output. The name in a gzip header has no end here.
func TestDecoderStopsAtABombWithoutOutput(t *testing.T) {
	defer goleak.VerifyNone(t)
	endless := append([]byte{0x1f, 0x8b, 8, 1 << 3, 0, 0, 0, 0, 0, 0}, bytes.Repeat([]byte("n"), maxDecoded+1<<20)...)
	body := encode(t, encoders[0].over, string(endless))
	d, err := NewDecoder("gzip, gzip")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	out, err := d.Decode(body)
	if len(out) > 0 || err == nil {
		t.Fatalf("%d bytes: gave %d bytes, %v", len(body), len(out), err)
	}
	if d.decoded > maxDecoded+64<<10 {
		t.Errorf("decoded %d bytes before it stopped", d.decoded)
	}
}

func TestDecoderMayBeClosedAtAnyPoint(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, e := range encoders {
		body := encode(t, e.over, "data: a\n\n", "data: b\n\n")
		for cut := range len(body) + 1 {
			d, err := NewDecoder(e.coding)
			if err != nil {
				t.Fatal(err)
			}
			if cut > 0 {
				_, _ = d.Decode(body[:cut])
			}
			d.Close()
			d.Close()
			if out, _ := d.Decode(body); len(out) > 0 {
				t.Errorf("%s: gave %q when closed", e.name, out)
			}
		}
	}
}

// Any bytes are decoded without a panic, and equally at any split.
func FuzzDecoder(f *testing.F) {
	for i, e := range encoders {
		f.Add(encode(f, e.over, "data: a\n\n", "data: b\n\n"), uint8(i), uint8(3))
	}
	f.Fuzz(func(t *testing.T, body []byte, kind, step uint8) {
		coding := encoders[int(kind)%len(encoders)].coding
		whole, err1 := decode(coding, body, len(body)+1)
		parts, err2 := decode(coding, body, int(step)%64+1)
		if (err1 == nil) != (err2 == nil) {
			t.Fatalf("%s: at once %v, in parts %v", coding, err1, err2)
		}
		if err1 == nil && whole != parts {
			t.Fatalf("%s: at once %q, in parts %q", coding, whole, parts)
		}
	})
}
