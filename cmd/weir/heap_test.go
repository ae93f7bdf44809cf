package main

import "testing"

func TestSmallHeapsGrowToOneSizeBeforeTheyAreCollected(t *testing.T) {
	const mb = 1 << 20
	for live, want := range map[uint64]int{0: 2300, 1 * mb: 2300, 6 * mb: 300, 8 * mb: 200, 12 * mb: 100, 15 * mb: 100, 500 * mb: 100} {
		if got := growth(live); got != want {
			t.Errorf("with %d MB in use the heap grows by %d %%, want %d %%", live/mb, got, want)
		}
	}
}
