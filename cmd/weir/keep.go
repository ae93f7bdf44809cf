package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"weir/proxy"
	"weir/store"
	"weir/store/call"
)

// keepFlags say what is kept of the calls' contents.
type keepFlags struct {
	what  string
	age   time.Duration
	size  byteSize
	limit byteSize
}

// mostKept is how much of a body is looked at, and so may be kept.
const mostKept = 8 << 20

func (f *keepFlags) add(fl *pflag.FlagSet) {
	f.size, f.limit = 2<<30, 1<<20
	fl.StringVar(&f.what, "keep", "none", "what is kept of requests and answers: none; shape, what a request is made of, without its words; full, bodies too, without keys")
	fl.DurationVar(&f.age, "keep-for", 168*time.Hour, "how long it is kept; 0: until it is deleted")
	fl.Var(&f.size, "keep-size", "what all of it may take in the database, the oldest going first; 0: any size")
	fl.Var(&f.limit, "keep-limit", "how much of each body is kept, up to 8MiB")
}

func (f *keepFlags) check() error {
	switch {
	case f.what != "none" && f.what != "shape" && f.what != "full":
		return usagef("--keep %s: want none, shape or full", f.what)
	case f.age < 0:
		return usagef("--keep-for %s: want 0 or more", f.age)
	case f.limit < 1 || f.limit > mostKept:
		return usagef("--keep-limit %s: want 1B to %s", f.limit, byteSize(mostKept))
	}
	return nil
}

// kept writes down the contents of a proxy's calls.
type kept struct {
	keeper *store.Keeper
	seam   *proxy.Keep // nil when nothing is to be kept
}

// keep begins to keep what f says. Where that is nothing, it deletes what was
// kept before and has had its time.
func (s *stack) keep(f keepFlags) (*kept, error) {
	var o store.KeeperOptions
	if f.what != "none" {
		o = store.KeeperOptions{For: f.age, Size: int64(f.size)}
	}
	keeper, err := store.NewKeeper(s.a.hard, s.db, o)
	if err != nil {
		return nil, err
	}
	k := &kept{keeper: keeper}
	if f.what == "none" {
		return k, nil
	}
	full, limit := f.what == "full", int(f.limit)
	k.seam = &proxy.Keep{Bodies: full, Limit: limit, To: func(c *call.Call, content proxy.Content) {
		row := store.Content{
			SpanID: c.SpanID, TraceID: c.TraceID, At: c.Started(), Shape: content.Shape, Full: full,
			RequestBytes: c.RequestBytes, ResponseBytes: c.ResponseBytes, Keys: content.Keys,
		}
		keeper.Add(content.Held(), func() store.Content { // counted when there is no room
			if full {
				row.Request, row.RequestTruncated = content.Request.Plain(limit)
				row.Response, row.ResponseTruncated = content.Response.Plain(limit)
			}
			return row
		})
	}}
	if full {
		fmt.Fprintln(s.a.err, f.warning(s))
	}
	return k, nil
}

// warning says what is kept, where, for how long, and how to delete it.
func (f *keepFlags) warning(s *stack) string {
	until := "until it is deleted"
	if f.age > 0 {
		until = "for " + strings.TrimSuffix(f.age.String(), "0m0s")
	}
	if f.size > 0 {
		until += ", the newest " + f.size.String()
	}
	return fmt.Sprintf("! --keep full: what requests and answers say is kept, keys redacted, %s of each, in %s, %s; weir calls --forget all%s deletes it",
		f.limit, s.path(), until, s.dbFlag())
}

// close writes what is left. What could not be kept is an error.
func (k *kept) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), sendOnFor)
	defer cancel()
	err := k.keeper.Shutdown(ctx)
	if dropped := k.keeper.Dropped(); dropped > 0 {
		return fmt.Errorf("the contents of %s could not be kept: %w", counted(int(dropped), "call"), orUnknown(k.keeper.Err()))
	}
	return err
}

// byteSize is a flag in bytes, as 512KiB or 2GiB.
type byteSize int64

var byteUnits = []struct {
	name  string
	bytes float64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func (b *byteSize) Set(text string) error {
	number, unit := strings.TrimSpace(text), 1.0
	for _, u := range byteUnits {
		if len(number) > len(u.name) && strings.EqualFold(number[len(number)-len(u.name):], u.name) {
			number, unit = strings.TrimSpace(number[:len(number)-len(u.name)]), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0) || n*unit > math.MaxInt64/2 {
		return errors.New("want a size as 512KiB, 64MiB or 2GiB")
	}
	*b = byteSize(n * unit)
	return nil
}

func (b byteSize) String() string {
	for _, u := range byteUnits {
		if n := float64(b) / u.bytes; n >= 1 && n == math.Trunc(n) {
			return strconv.FormatFloat(n, 'f', -1, 64) + u.name
		}
	}
	return "0B"
}

// Type is what help calls the value.
func (*byteSize) Type() string { return "size" }

// forget deletes what was kept of calls: those of the last 30m, one by the
// beginning of its id, or all.
func (a *app) forget(ctx context.Context, which, path string) error {
	// To be written, a database is made where there is none.
	there, err := a.openToRead(ctx, path)
	if err != nil {
		return err
	}
	defer there.Close()
	db, err := store.Open(ctx, there.Path, store.Options{})
	if err != nil {
		return usage(err)
	}
	n, err := forgetIn(ctx, db, which)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "deleted what was kept of %s\n", counted(n, "call"))
	fmt.Fprintln(a.err, "next: weir calls"+dbFlag(path))
	return nil
}

func forgetIn(ctx context.Context, db *store.DB, which string) (n int, err error) {
	if which == "all" {
		return db.ForgetSince(ctx, time.Time{})
	}
	if d, err := time.ParseDuration(which); err == nil && d > 0 {
		return db.ForgetSince(ctx, time.Now().Add(-d))
	}
	if !spanID.MatchString(which) {
		return 0, usagef("--forget %s: want a time as 30m, the beginning of a call's id, or all", which)
	}
	views, err := db.Call(ctx, which)
	if err != nil {
		return 0, err
	}
	for _, v := range views {
		deleted, err := db.ForgetCall(ctx, v.SpanID)
		if err != nil {
			return n, err
		}
		if deleted {
			n++
		}
	}
	return n, nil
}
