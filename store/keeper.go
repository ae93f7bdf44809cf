package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// KeeperOptions say what is kept for how long.
type KeeperOptions struct {
	For  time.Duration // from the call's start; 0: for ever
	Size int64         // bytes that all contents may take in the database, the oldest going first; 0: any number
	Room int64         // bytes that may wait to be written; 0: 64 MiB
}

const (
	waitingRoom = 64 << 20
	keepRows    = 64      // of a transaction,
	keepBytes   = 4 << 20 // and about its bytes: the recorder writes by the same connection
	pruneWait   = 20 * time.Millisecond
	pruneTick   = time.Minute
)

// Keeper writes contents to the database beside the streams, in batches of its
// own goroutine, and deletes those whose time or room is over, in small steps.
// What finds no room to wait in is not kept, and counted: nobody waits.
type Keeper struct {
	writing
	o    KeeperOptions
	wake chan struct{} // holds one

	mu      sync.Mutex
	queue   []draft
	waiting int64 // bytes, of those under way to the database too
	stopped bool

	// Of the goroutine alone.
	rows    []contentRow // made, and not written yet
	held    int64        // what their drafts held
	total   int64        // bytes that all contents take
	version int64        // of the database, when they were counted

	kept, dropped atomic.Int64
	dropErr       atomic.Pointer[error]
}

// draft is a content that is made when it is to be written.
type draft struct {
	size int64
	make func() Content
}

// NewKeeper begins to keep. With no contents added it only deletes those whose
// time is over.
func NewKeeper(ctx context.Context, db *DB, o KeeperOptions) (*Keeper, error) {
	if o.Room <= 0 {
		o.Room = waitingRoom
	}
	k := &Keeper{writing: writing{db: db}, o: o, wake: make(chan struct{}, 1)}
	if err := k.note(k.count(ctx)); err != nil {
		return nil, err
	}
	k.begin(k.run)
	return k, nil
}

// Add keeps what make gives, which is called later, on another goroutine, so
// that whatever costs time costs it there. size is what it holds in memory
// until then. Add does not wait; it says whether there was room.
func (k *Keeper) Add(size int64, make func() Content) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped || k.waiting+size > k.o.Room {
		k.drop(1, errNoRoom)
		return false
	}
	k.waiting += size
	k.queue = append(k.queue, draft{size, make})
	select {
	case k.wake <- struct{}{}:
	default:
	}
	return true
}

// Kept is how many contents were written, Dropped how many were not and never
// will be.
func (k *Keeper) Kept() int64    { return k.kept.Load() }
func (k *Keeper) Dropped() int64 { return k.dropped.Load() }

// Err is why contents could not be written or deleted the last time it was
// tried, or else why the last one was dropped; nil when all went well.
func (k *Keeper) Err() error {
	if err := k.failure(); err != nil {
		return err
	}
	if err := k.dropErr.Load(); err != nil {
		return *err
	}
	return nil
}

var errNoRoom = errors.New("more contents came at once than could wait to be written")

func (k *Keeper) drop(n int, why error) {
	k.dropped.Add(int64(n))
	k.dropErr.Store(&why)
}

// Flush writes all that was added before, and deletes all whose time or room is
// over.
func (k *Keeper) Flush(ctx context.Context) error { return k.all(ctx) }

// Shutdown writes all that was added, and stops. It gives up when ctx ends.
func (k *Keeper) Shutdown(ctx context.Context) error {
	err := k.end(ctx, func() {
		k.mu.Lock()
		k.stopped = true
		k.mu.Unlock()
	})
	if err != nil {
		return err
	}
	return k.Err()
}

func (k *Keeper) run() {
	ticker := time.NewTicker(pruneTick)
	defer ticker.Stop()
	var due <-chan time.Time // a batch is to be written
	soon := time.After(0)    // a step of deletion is to be made
	for {
		select {
		case <-k.wake:
			if due == nil {
				due = time.After(batchWait)
			}
		case <-due:
			due = nil
			if k.write() != nil {
				due = time.After(tick) // kept, and tried again
			} else if soon == nil {
				soon = time.After(0)
			}
		case <-soon:
			soon = nil
			if more, err := k.prune(); more && err == nil {
				soon = time.After(pruneWait)
			}
		case <-ticker.C:
			// Others write and delete contents too.
			_ = k.note(k.count(context.Background())) // told by Err
			soon = time.After(0)
		case answer := <-k.flush:
			err := k.write()
			for more := true; more && err == nil; {
				more, err = k.prune()
			}
			answer <- err
		case <-k.stop:
			k.finish()
			return
		}
	}
}

// finish writes what is left. What cannot be written after some tries is
// dropped.
func (k *Keeper) finish() {
	for tries := 1; ; tries++ {
		err := k.write()
		if err == nil {
			break
		}
		if tries == lastTries {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.drop(len(k.rows)+len(k.queue), err)
			k.queue, k.rows = nil, nil
			return
		}
		time.Sleep(tick)
	}
	_, _ = k.prune() // told by Err
}

// write writes all that waits, a batch after the other.
func (k *Keeper) write() error {
	for {
		k.fill()
		if len(k.rows) == 0 {
			return nil
		}
		if err := k.note(k.insert()); err != nil {
			return err
		}
		k.free(k.held)
		k.kept.Add(int64(len(k.rows)))
		clear(k.rows)
		k.rows, k.held = k.rows[:0], 0
	}
}

// fill makes contents of drafts until a batch is full.
func (k *Keeper) fill() {
	for len(k.rows) < keepRows && k.held < keepBytes {
		k.mu.Lock()
		if len(k.queue) == 0 {
			k.queue = nil
			k.mu.Unlock()
			return
		}
		d := k.queue[0]
		k.queue[0] = draft{}
		k.queue = k.queue[1:]
		k.mu.Unlock()
		row, err := k.made(d)
		if err != nil {
			k.drop(1, err)
			k.free(d.size)
			continue
		}
		k.rows = append(k.rows, row)
		k.held += d.size
	}
}

func (k *Keeper) free(bytes int64) {
	k.mu.Lock()
	k.waiting -= bytes
	k.mu.Unlock()
}

// made makes a content, and packs it. Whatever goes wrong in that, streams go
// on.
func (k *Keeper) made(d draft) (row contentRow, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a call's content could not be read: %v", v)
		}
	}()
	c := d.make()
	row = c.row()
	until := any(nil)
	if k.o.For > 0 {
		until = c.At.Add(k.o.For).UnixNano()
	}
	row.values = append(row.values, until)
	return row, nil
}

// insert writes the batch in one transaction.
func (k *Keeper) insert() error {
	tx, err := k.db.write.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	insert, err := tx.Prepare(insertContent)
	if err != nil {
		return err
	}
	defer insert.Close()
	var bytes int64
	for _, row := range k.rows {
		if _, err := insert.Exec(row.values...); err != nil {
			return err
		}
		bytes += row.kept
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	k.total += bytes
	return nil
}
