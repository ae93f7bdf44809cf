package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
	"weir/store/call"
)

// imported is a call of two seconds that another program made.
func imported() *call.Call {
	at := call.At(time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC))
	return &call.Call{
		Side: call.Imported, Operation: wire.OpChat, Outcome: call.OK, UsageSource: call.UsageReported,
		Usage:    wire.Usage{Input: wire.N(100), Output: wire.N(50)},
		Instants: call.Instants{Arrived: at, Done: at + call.Instant(2*time.Second)},
	}
}

func TestReportInventsNothingOfImportedCalls(t *testing.T) {
	r := summary(t, Options{}, imported(), imported())
	if r.Total.Queued.N != 0 || r.Total.Account.Read.Known || r.Total.Stream.NotStreamed != 0 || len(r.Warnings) > 0 {
		t.Errorf("queued %+v, account %+v, stream %+v, warnings %q", r.Total.Queued, r.Total.Account, r.Total.Stream, r.Warnings)
	}
	if r.Total.ToDone.N != 2 || r.Total.ToDone.Max != N(2000) {
		t.Errorf("to the end: %+v", r.Total.ToDone)
	}
	whole := imported()
	whole.NoFirstToken = call.AbsentNotStreamed
	r = summary(t, Options{}, imported(), whole)
	if d := cmp.Diff([]string{"1 of 2 calls was not streamed and has no TTFT"}, r.Warnings); d != "" {
		t.Error(d)
	}
}

func TestAccountOfAnImportedCallIsNotDrawn(t *testing.T) {
	var b strings.Builder
	Explain(&b, imported(), nil, Style{Width: 80})
	if got := b.String(); !strings.Contains(got, "total 2000ms; the program that made this span does not say of which parts") || strings.Contains(got, "queue") {
		t.Errorf("drawn:\n%s", got)
	}
}

func TestCacheThatContradictsItsInputHasNoShare(t *testing.T) {
	c := seen("chat", 400)
	c.Usage.Input, c.Usage.CacheRead = wire.N(10), wire.N(90)
	if share := summary(t, Options{}, c).Total.Tokens.CacheReadShare; share.Known {
		t.Errorf("share %v", share)
	}
}
