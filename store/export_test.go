package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func env(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

// What a process could not send is sent on demand, once; with a selection all
// of it goes, also what the collector took before and what was recorded without
// one.
func TestResendSendsWhatWaitsAndThenTheSelection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	c := &collector{}
	url, stopCollector := listenOn(t, c, "127.0.0.1:0")
	_, tr, stop := tracing(t, path, nil)
	for i := range 3 {
		record(tr, context.Background(), example(i))
	}
	stop()
	named := setEnv(t, url)
	_, tr, stop = tracing(t, path, named)
	record(tr, context.Background(), example(3))
	await(t, "the span to come", func() bool { return len(c.ids()) == 1 })
	stopCollector()
	for i := range 2 {
		record(tr, context.Background(), example(4+i))
	}
	await(t, "the outbox to fail", func() bool { return tr.Outbox.Failed() > 0 })
	stop()

	db := openAt(t, path)
	ctx := context.Background()
	d, err := db.Deliveries(ctx)
	if err != nil || len(d) != 1 || d[0].Target != url || d[0].Sent != 1 || d[0].Waiting != 2 || d[0].Failed == 0 || d[0].Err == "" || d[0].FailedAt.IsZero() {
		t.Fatalf("deliveries %+v, %v", d, err)
	}
	if n, err := Resend(ctx, db, nil, ResendOptions{TracingOptions: TracingOptions{Env: env(named)}}); n.Sent != 0 || err == nil || !strings.Contains(err.Error(), url) {
		t.Errorf("to a collector that is down: %+v sent, %v", n, err)
	}

	listenOn(t, c, url[len("http://"):])
	if n, err := Resend(ctx, db, nil, ResendOptions{TracingOptions: TracingOptions{Env: env(named)}}); n.Sent != 2 || err != nil {
		t.Errorf("%+v sent, %v; want the 2 that waited", n, err)
	}
	if n, err := Resend(ctx, db, nil, ResendOptions{TracingOptions: TracingOptions{Env: env(named)}}); n.Sent != 0 || err != nil {
		t.Errorf("%+v sent, %v; want none the second time", n, err)
	}
	if d, err = db.Deliveries(ctx); err != nil || d[0].Sent != 3 || d[0].Waiting != 0 {
		t.Errorf("deliveries %+v, %v", d, err)
	}
	everything, err := ParseSelection([]string{"all"})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Resend(ctx, db, &everything, ResendOptions{TracingOptions: TracingOptions{Env: env(named)}}); n.Sent != 6 || err != nil {
		t.Errorf("%+v sent, %v; want all 6", n, err)
	}
	times := map[int]int{}
	for _, n := range c.ids() {
		times[n]++
	}
	if d := cmp.Diff(map[int]int{1: 3, 2: 3}, times); d != "" {
		t.Errorf("how many spans came how often:\n%s", d)
	}
}

func TestResendSendsNothingTwiceInOneGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	c := &collector{ill: true}
	url, _ := listenOn(t, c, "127.0.0.1:0")
	named := setEnv(t, url)
	_, tr, stop := tracing(t, path, named)
	for i := range 4 {
		record(tr, context.Background(), example(i))
	}
	stop()
	c.mu.Lock()
	c.ill = false
	c.mu.Unlock()
	everything, _ := ParseSelection([]string{"all"})
	if n, err := Resend(context.Background(), openAt(t, path), &everything, ResendOptions{TracingOptions: TracingOptions{Env: env(named)}}); n.Sent != 4 || err != nil || len(c.ids()) != 4 {
		t.Errorf("%+v sent of 4, %d came, %v", n, len(c.ids()), err)
	}
}

func TestResendWantsACollector(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
	for _, o := range []ResendOptions{{}, {TracingOptions: TracingOptions{Env: env(nil)}}} {
		if _, err := Resend(context.Background(), db, nil, o); !errors.Is(err, ErrNoCollector) {
			t.Errorf("%v", err)
		}
	}
}

// One message holds no more than collectors take, and the rest follows.
func TestLongSpansGoInSeveralMessages(t *testing.T) {
	c := &collector{}
	url, _ := listenOn(t, c, "127.0.0.1:0")
	_, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), setEnv(t, url))
	for i := range 60 {
		long := example(i)
		long.ErrorBody = strings.Repeat("x", 64<<10)
		record(tr, context.Background(), long)
	}
	stop()
	if n := len(c.ids()); n != 60 || c.largest > 3<<20 || c.seen < 2 {
		t.Errorf("%d spans in %d messages, the largest of %d bytes", n, c.seen, c.largest)
	}
}
