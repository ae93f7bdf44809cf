package store

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/store/call"
)

func TestImportedCallsComeBackAsTheyWere(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
	ctx := context.Background()
	var calls []*call.Call
	for i := range 600 { // more than one batch
		c := example(i)
		c.SpanID, c.TraceID = [8]byte{1, byte(i >> 8), byte(i)}, [16]byte{1}
		calls = append(calls, c)
	}
	calls[1].Side = call.Imported
	broken := errors.New("broken")
	some := func(n int, end error) func(func(*call.Call, error) bool) {
		return func(yield func(*call.Call, error) bool) {
			for _, c := range calls[:n] {
				if !yield(c, nil) {
					return
				}
			}
			if end != nil {
				yield(nil, end)
			}
		}
	}
	if stored, known, err := Import(ctx, db, "test", some(550, broken)); stored != 512 || known != 0 || !errors.Is(err, broken) {
		t.Errorf("%d stored, %d known, %v; want the first batch and the error", stored, known, err)
	}
	if stored, known, err := Import(ctx, db, "test", some(600, nil)); stored != 88 || known != 512 || err != nil {
		t.Errorf("%d stored, %d known, %v", stored, known, err)
	}
	got := all(t, db, "all")
	if len(got) != 600 {
		t.Fatalf("%d calls", len(got))
	}
	for i := range got {
		if d := cmp.Diff(calls[i], got[i]); d != "" {
			t.Fatalf("call %d:\n%s", i, d)
		}
	}
	var sent int
	if err := db.read.QueryRow("SELECT count(*) FROM spans WHERE sampled = 1").Scan(&sent); err != nil || sent != 599 {
		t.Errorf("%d may be sent, %v; want all but the other program's", sent, err)
	}
}
