package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy"
	"weir/proxy/wire"
	"weir/store"
	"weir/store/call"
)

func TestByteSize(t *testing.T) {
	for _, row := range []struct{ text, shown string }{
		{"0", "0B"}, {"1", "1B"}, {"1023B", "1023B"}, {"1KiB", "1KiB"}, {"1536", "1536B"}, {"64 mib", "64MiB"},
		{"2GiB", "2GiB"}, {"2048MiB", "2GiB"}, {"1.5GiB", "1536MiB"}, {"3TiB", "3TiB"},
	} {
		var b byteSize
		if err := b.Set(row.text); err != nil || b.String() != row.shown {
			t.Errorf("%s is %s, want %s: %v", row.text, b, row.shown, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1MiB", "2GB", "many", "NaN", "Inf", "9e30TiB"} {
		var b byteSize
		if err := b.Set(text); err == nil {
			t.Errorf("%q is %s, want an error", text, b)
		}
	}
}

// keeps opens a database and what --keep makes of the flags.
func keeps(t *testing.T, path string, set func(*keepFlags)) (s *stack, k *kept, said *bytes.Buffer) {
	t.Helper()
	said = &bytes.Buffer{}
	a := &app{stdio: stdio{out: said, err: said}, env: func(string) (string, bool) { return "", false }, hard: context.Background()}
	s, err := a.openStack(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	f := keepFlags{what: "none", age: 168 * time.Hour, size: 2 << 30, limit: 1 << 20}
	set(&f)
	if err := f.check(); err != nil {
		t.Fatal(err)
	}
	if k, err = s.keep(f); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.close() })
	return s, k, said
}

func TestKeepWritesDownWhatTheProxyHands(t *testing.T) {
	const request, response = `{"q":"my key\nsk-abcdef-0123456789"}`, "data: {\"delta\":\"hello\"}\n\n"
	shape := &wire.Shape{Blocks: []wire.Block{{Role: wire.User, Kind: wire.KindText, Bytes: 12, Hash: 3}}}
	at := time.Now()
	c := &call.Call{
		SpanID: [8]byte{1}, TraceID: [16]byte{2}, RequestBytes: int64(len(request)), ResponseBytes: 10_000,
		Instants: call.Instants{Arrived: call.At(at)},
	}
	handed := proxy.Content{
		Shape: shape, Request: proxy.Body{Bytes: []byte(request), Size: int64(len(request))},
		Response: proxy.Body{Bytes: []byte(response), Size: 10_000},
	}
	base := store.Content{SpanID: c.SpanID, TraceID: c.TraceID, At: c.Started(), Shape: shape, RequestBytes: c.RequestBytes, ResponseBytes: c.ResponseBytes}
	for what, want := range map[string]func(*store.Content){
		"shape": func(*store.Content) {},
		"full": func(c *store.Content) {
			c.Full, c.ResponseTruncated = true, true
			c.Request, c.Response = []byte(`{"q":"my key\nsk-[redacted]"}`), []byte(response)
		},
	} {
		s, k, said := keeps(t, filepath.Join(t.TempDir(), "weir.db"), func(f *keepFlags) { f.what = what })
		if k.seam.Bodies != (what == "full") {
			t.Errorf("--keep %s keeps bodies: %v", what, k.seam.Bodies)
		}
		if warned := strings.Contains(said.String(), "weir calls --forget all"); warned != (what == "full") {
			t.Errorf("--keep %s says %q", what, said)
		}
		k.seam.To(c, handed)
		if err := k.close(); err != nil {
			t.Fatal(err)
		}
		got, ok, err := s.db.Content(context.Background(), c.SpanID)
		if err != nil || !ok {
			t.Fatalf("--keep %s: %v, %v", what, ok, err)
		}
		wanted := base
		want(&wanted)
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("--keep %s: %s", what, diff)
		}
	}
}

func TestKeepNothingIsTheDefault(t *testing.T) {
	_, k, said := keeps(t, filepath.Join(t.TempDir(), "weir.db"), func(*keepFlags) {})
	if k.seam != nil || said.Len() > 0 {
		t.Errorf("nothing is to be kept, and yet %+v, %q", k.seam, said)
	}
}

func TestKeepSaysWhatCouldNotBeKept(t *testing.T) {
	_, k, _ := keeps(t, filepath.Join(t.TempDir(), "weir.db"), func(f *keepFlags) { f.what = "shape" })
	huge := proxy.Content{Shape: &wire.Shape{Blocks: make([]wire.Block, 1)}}
	huge.Shape.Blocks[0].Name = strings.Repeat("x", 65<<20) // more than may wait
	k.seam.To(&call.Call{SpanID: [8]byte{1}, Instants: call.Instants{Arrived: call.Now()}}, huge)
	if err := k.close(); err == nil || !strings.Contains(err.Error(), "could not be kept: more contents came at once") {
		t.Errorf("error %v", err)
	}
}
