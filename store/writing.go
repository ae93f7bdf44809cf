package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// How those that write beside the streams take their time.
const (
	batchWait = 200 * time.Millisecond // how long what is to be written waits for more
	tick      = 250 * time.Millisecond // until what could not be written is tried again
	lastTries = 8                      // at the end
)

// writing is what each of those that write beside the streams is: a goroutine
// that can be asked to write all, or to end, and what went wrong last.
type writing struct {
	db    *DB
	flush chan chan error // takes who asks for all to be written
	stop  chan struct{}   // closed to have it end
	done  chan struct{}   // closed when it has
	once  sync.Once
	last  atomic.Pointer[error]
}

// begin starts the goroutine, which ends soon after stop is closed.
func (w *writing) begin(run func()) {
	w.flush, w.stop, w.done = make(chan chan error), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(w.done)
		run()
	}()
}

// all has everything written that came before.
func (w *writing) all(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case w.flush <- answer:
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end refuses what comes from now on, and waits for the end of the goroutine or
// of ctx, whose error it then gives.
func (w *writing) end(ctx context.Context, refuse func()) error {
	w.once.Do(func() {
		refuse()
		close(w.stop)
	})
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// note takes down how writing went.
func (w *writing) note(err error) error {
	if err == nil {
		w.last.Store(nil)
		return nil
	}
	err = fmt.Errorf("database %s: %w", w.db.Path, explain(err))
	w.last.Store(&err)
	return err
}

// failure is what went wrong the last time; nil when nothing did.
func (w *writing) failure() error {
	if err := w.last.Load(); err != nil {
		return *err
	}
	return nil
}
