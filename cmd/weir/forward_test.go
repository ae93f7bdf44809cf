package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/proxy"
)

func TestMeasureAddsToTheKnownProviders(t *testing.T) {
	known := proxy.KnownHosts()
	for _, row := range []struct {
		sentence    string
		given, want []string
	}{
		{"nothing given → the proxy's own list", nil, nil},
		{"a host → beside them", []string{"my.gateway.test"}, slices.Concat([]string{"my.gateway.test"}, known)},
		{"=HOST → in their place", []string{"=my.gateway.test", "*.b.test"}, []string{"my.gateway.test", "*.b.test"}},
	} {
		if diff := cmp.Diff(row.want, measuredHosts(row.given)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.sentence, diff)
		}
	}
}
