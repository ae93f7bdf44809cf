package main

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/proxy"
	"weir/store"
	"weir/store/call"
)

// recording is a proxy that records into a file of its own.
type recording struct {
	base  string // of the proxy
	stack *stack
	path  string // of the database
	close func()
}

// record serves a proxy on l until the test, or close, ends it.
func record(t *testing.T, l net.Listener, upstreams []proxy.Upstream) *recording {
	t.Helper()
	r := &recording{base: "http://" + l.Addr().String(), path: filepath.Join(t.TempDir(), "truth.db")}
	a := &app{
		stdio: stdio{strings.NewReader(""), io.Discard, io.Discard},
		env:   func(string) (string, bool) { return "", false }, hard: context.Background(),
	}
	var err error
	if r.stack, err = a.openStack(r.path, nil); err != nil {
		t.Fatal(err)
	}
	p := r.stack.proxy(upstreams)
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	r.close = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if p.Shutdown(ctx) != nil {
			p.Close()
		}
		if err := errors.Join(<-served, r.stack.close()); err != nil {
			t.Errorf("end the proxy and its store: %v", err)
		}
	})
	t.Cleanup(r.close)
	return r
}

// views are the two spans of one call.
type views struct{ client, proxy *call.Call }

// stored ends the chain, opens its file anew and reads every call back, by the
// trace that its two views share. It insists that there are exactly two.
func (r *recording) stored(t *testing.T) []views {
	t.Helper()
	byTrace := map[[16]byte]*views{}
	for _, c := range r.spans(t) {
		v := byTrace[c.TraceID]
		if v == nil {
			v = &views{}
			byTrace[c.TraceID] = v
		}
		switch {
		case c.Side == call.Client && v.client == nil:
			v.client = c
		case c.Side == call.Proxy && v.proxy == nil:
			v.proxy = c
		default:
			t.Errorf("trace %x has more than one span of side %q", c.TraceID, c.Side)
		}
	}
	var all []views
	for trace, v := range byTrace {
		switch {
		case v.client == nil || v.proxy == nil:
			t.Errorf("trace %x has client span: %t, proxy span: %t; want both", trace, v.client != nil, v.proxy != nil)
		case v.proxy.ParentSpan != v.client.SpanID:
			t.Errorf("trace %x: the proxy's span is the child of %x, want of the client's %x", trace, v.proxy.ParentSpan, v.client.SpanID)
		default:
			all = append(all, *v)
		}
	}
	slices.SortFunc(all, func(a, b views) int { return int(a.proxy.Arrived - b.proxy.Arrived) })
	return all
}

// spans ends the chain and reads every span out of its file.
func (r *recording) spans(t *testing.T) []*call.Call {
	t.Helper()
	r.close()
	db, err := store.Open(t.Context(), r.path, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	everything, err := store.ParseSelection([]string{"all"})
	if err != nil {
		t.Fatal(err)
	}
	var all []*call.Call
	var broken error
	for c, err := range db.Calls(t.Context(), everything, store.Order{}) {
		if err != nil {
			broken = errors.Join(broken, err)
			continue
		}
		all = append(all, c)
	}
	if broken != nil {
		t.Fatal(broken)
	}
	return all
}
