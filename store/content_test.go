package store

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/store/call"
)

// A key that looks like none is kept out of what a call quotes of it.
func TestTheKeysOfACallAreNotKept(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
	k := keeping(t, db, KeeperOptions{})
	c := content(1)
	c.Keys = call.NewKeys("gateway/abc-1111")
	c.Request = []byte(`{"prompt":"my key is gateway/abc-1111"}`)
	c.Response = []byte(`{"error":"no quota for gateway\/abc-1111"}`)
	add(t, k, c)
	flush(t, k)
	got, _, err := db.Content(context.Background(), c.SpanID)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"prompt":"my key is [redacted]"}`, `{"error":"no quota for [redacted]"}`}
	if diff := cmp.Diff(want, []string{string(got.Request), string(got.Response)}); diff != "" {
		t.Error(diff)
	}
	if got.Keys != nil {
		t.Error("keys came back from the database")
	}
}
