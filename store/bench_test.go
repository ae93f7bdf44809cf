package store

import (
	"context"
	"path/filepath"
	"testing"
)

// BenchmarkRecord is what one call costs from its span's start to its row.
func BenchmarkRecord(b *testing.B) {
	_, tr, stop := tracing(b, filepath.Join(b.TempDir(), "weir.db"), nil)
	c := example(0)
	b.ReportAllocs()
	for b.Loop() {
		record(tr, context.Background(), c)
		if tr.Recorder.Waiting() > queueLength/2 { // calls come faster than the disk takes them
			if err := tr.Recorder.ForceFlush(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
	stop()
	b.ReportMetric(float64(tr.Recorder.Lost()), "lost")
}

func BenchmarkRead(b *testing.B) {
	db, tr, stop := tracing(b, filepath.Join(b.TempDir(), "weir.db"), nil)
	const n = 20_000
	for i := range n {
		record(tr, context.Background(), example(i))
	}
	stop()
	s, _ := ParseSelection([]string{"all"})
	for b.Loop() {
		for _, err := range db.Calls(context.Background(), s, Order{}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "calls/s")
}
