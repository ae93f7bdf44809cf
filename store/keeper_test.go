package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

func keeping(t testing.TB, db *DB, o KeeperOptions) *Keeper {
	t.Helper()
	k, err := NewKeeper(context.Background(), db, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Shutdown(context.Background()) })
	return k
}

// content is that of the nth call, of which nothing else is known.
func content(n int) Content {
	c := Content{At: time.Now(), Full: true, Request: []byte("{}"), RequestBytes: 2}
	binary.BigEndian.PutUint64(c.SpanID[:], uint64(n))
	c.TraceID[15] = byte(n)
	return c
}

// noise is text that does not get smaller.
func noise(n int) []byte {
	b := make([]byte, n/2)
	rand.Read(b)
	return []byte(hex.EncodeToString(b))
}

func add(t testing.TB, k *Keeper, c Content) {
	t.Helper()
	if !k.Add(int64(len(c.Request)+len(c.Response)), func() Content { return c }) {
		t.Fatal("there was no room")
	}
}

func flush(t testing.TB, k *Keeper) {
	t.Helper()
	if err := k.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// keptOf are those of the first n calls of which a content is there.
func keptOf(t testing.TB, db *DB, n int) (there []int) {
	t.Helper()
	for i := range n {
		_, ok, err := db.Content(context.Background(), content(i).SpanID)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			there = append(there, i)
		}
	}
	return there
}

func TestContentComesBackAsItWas(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
	k := keeping(t, db, KeeperOptions{})
	shape := &wire.Shape{Blocks: []wire.Block{
		{Role: wire.Definition, Name: "Bash", Bytes: 900, Hash: 1<<63 + 5},
		{Role: wire.System, Kind: wire.KindText, Bytes: 7000, Hash: 7},
		{Role: wire.User, Kind: wire.KindText, Bytes: 0},
		{Role: wire.Assistant, Kind: wire.KindTool, Name: "名 \"x\"", Bytes: 12, Hash: 0xfeed},
	}}
	full, only, nothing := content(1), content(2), content(3)
	full.Shape, full.Response, full.ResponseBytes, full.ResponseTruncated = shape, noise(100_000), 200_000, true
	only.Full, only.Shape, only.Request = false, shape, nil
	nothing.Request, nothing.RequestBytes, nothing.Shape = nil, 0, &wire.Shape{}
	for _, want := range []Content{full, only, nothing} {
		add(t, k, want)
	}
	flush(t, k)
	for _, want := range []Content{full, only, nothing} {
		got, ok, err := db.Content(context.Background(), want.SpanID)
		if err != nil || !ok {
			t.Fatalf("call %x: %v, %v", want.SpanID, ok, err)
		}
		want.At = want.At.Round(0)
		if want.Shape != nil && want.Shape.Blocks == nil {
			want.Shape.Blocks = []wire.Block{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("call %x came back otherwise: %s", want.SpanID, diff)
		}
	}
	if _, ok, err := db.Content(context.Background(), [8]byte{9}); ok || err != nil {
		t.Errorf("a call of which nothing is kept has a content: %v, %v", ok, err)
	}
	if k.Kept() != 3 || k.Dropped() != 0 || k.Err() != nil {
		t.Errorf("kept %d, dropped %d, %v", k.Kept(), k.Dropped(), k.Err())
	}
}

func TestSecretsAreNotKept(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
	k := keeping(t, db, KeeperOptions{})
	c := content(1)
	c.Request = []byte(`{"messages":[{"content":"my key\nsk-proj-0123456789 and x-api-key: hunter2"}]}`)
	c.Response = []byte("data: {\"delta\":\"AKIAIOSF\"}\n\ndata: {\"delta\":\"ODNN7EXAMPLE\"}\n\n")
	add(t, k, c)
	flush(t, k)
	got, _, err := db.Content(context.Background(), c.SpanID)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"0123456789", "hunter2", "IOSF", "ODNN7EXAMPLE"} {
		if strings.Contains(string(got.Request)+string(got.Response), secret) {
			t.Errorf("%s was kept: %s %s", secret, got.Request, got.Response)
		}
	}
	if !bytes.Contains(got.Request, []byte("my key")) || bytes.Count(got.Response, []byte("delta")) != 2 {
		t.Errorf("more than the secrets is gone: %s %s", got.Request, got.Response)
	}
}

// While the disk takes nothing, contents wait until there is no more room, and
// no call waits with them.
func TestWhatFindsNoRoomIsCounted(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
	k := keeping(t, db, KeeperOptions{Room: 1000})
	busy, err := db.write.Begin()
	if err != nil {
		t.Fatal(err)
	}
	took := 0
	for i := range 50 {
		c := content(i)
		if k.Add(100, func() Content { return c }) {
			took++
		}
	}
	if took != 10 || k.Dropped() != 40 {
		t.Errorf("%d of 50 found room, %d are counted as dropped", took, k.Dropped())
	}
	if err := busy.Rollback(); err != nil {
		t.Fatal(err)
	}
	flush(t, k)
	add(t, k, content(60)) // there is room again
	flush(t, k)
	if there := keptOf(t, db, 61); len(there) != 11 || k.Kept() != 11 {
		t.Errorf("kept are %v, and counted %d", there, k.Kept())
	}
	if k.Err() == nil || !strings.Contains(k.Err().Error(), "could wait to be written") {
		t.Errorf("why some were dropped is %v", k.Err())
	}
}

func TestContentThatCannotBeMadeHarmsNoOther(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
	k := keeping(t, db, KeeperOptions{Room: 10})
	for range 3 { // and gives its room back
		k.Add(10, func() Content { panic("out of range") })
		flush(t, k)
	}
	add(t, k, content(1))
	flush(t, k)
	if k.Dropped() != 3 || k.Kept() != 1 || k.Err() == nil || !strings.Contains(k.Err().Error(), "out of range") {
		t.Errorf("dropped %d, kept %d, %v", k.Dropped(), k.Kept(), k.Err())
	}
}

func TestShutdownWritesWhatWaits(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
	k := keeping(t, db, KeeperOptions{})
	for i := range 500 {
		add(t, k, content(i))
	}
	if err := k.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if k.Add(1, func() Content { return content(999) }) {
		t.Error("one that has stopped took a content")
	}
	if n := len(keptOf(t, db, 500)); n != 500 || k.Dropped() != 1 {
		t.Errorf("%d of 500 were written, %d dropped", n, k.Dropped())
	}
}

func TestContentsThatCannotBeWrittenAreCountedAtTheEnd(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
	k := keeping(t, db, KeeperOptions{})
	if _, err := db.write.Exec("DROP TABLE contents"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		add(t, k, content(i))
	}
	if err := k.Shutdown(context.Background()); err == nil || k.Dropped() != 3 {
		t.Errorf("dropped %d, %v", k.Dropped(), err)
	}
}

func TestContentsGoWhenTheirTimeIsOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	db := openAt(t, path)
	first := keeping(t, db, KeeperOptions{For: 2 * time.Hour})
	for i := range 300 {
		c := content(i)
		c.At = time.Now().Add(-time.Duration(i) * time.Minute)
		add(t, first, c)
	}
	flush(t, first)
	if n := len(keptOf(t, db, 300)); n != 120 && n != 121 { // as a minute may have passed
		t.Errorf("of 300 calls, one a minute, %d are kept for 2 h", n)
	}
	// One that keeps for less deletes what others kept for longer.
	second := keeping(t, db, KeeperOptions{For: time.Hour})
	flush(t, second)
	if n := len(keptOf(t, db, 300)); n != 60 && n != 61 {
		t.Errorf("%d are kept for 1 h", n)
	}
	if err := second.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	// One that keeps nothing holds the others' promise, and no more than that.
	late := content(400)
	late.At = time.Now().Add(-119 * time.Minute)
	add(t, first, late)
	forEver := keeping(t, db, KeeperOptions{})
	flush(t, first)
	flush(t, forEver)
	if _, ok, _ := db.Content(context.Background(), late.SpanID); !ok {
		t.Error("a content whose time is not over is gone")
	}
	if _, err := db.write.Exec("UPDATE contents SET until_ns = 1 WHERE span_id = ?", late.SpanID[:]); err != nil {
		t.Fatal(err)
	}
	flush(t, forEver)
	if _, ok, _ := db.Content(context.Background(), late.SpanID); ok {
		t.Error("a content whose time is over is there")
	}
}

func TestOldestGoWhenTheRoomIsOverAndItsSpaceIsUsedAgain(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
	const each, room = 128 << 10, 2 << 20
	k := keeping(t, db, KeeperOptions{Size: room})
	pages := func() (n int64) {
		if err := db.write.QueryRow("PRAGMA page_count").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var once int64
	const calls = 160 // ten times the room
	for i := range calls {
		c := content(i)
		c.At = time.Unix(int64(1_000_000+i), 0)
		c.Request = noise(each)
		add(t, k, c)
		flush(t, k)
		if i == calls/5 {
			once = pages()
		}
	}
	there := keptOf(t, db, calls)
	for i, n := range there {
		if n != calls-len(there)+i {
			t.Fatalf("not the newest are kept: %v", there)
		}
	}
	var sum int64
	if err := db.read.QueryRow("SELECT sum(kept_bytes) FROM contents").Scan(&sum); err != nil {
		t.Fatal(err)
	}
	if sum > room || sum < room/2 {
		t.Errorf("%d contents of %d bytes are kept in a room of %d", len(there), sum, room)
	}
	if end := pages(); end > once+once/10 {
		t.Errorf("the file grew from %d to %d pages", once, end)
	}
}

func TestForgottenContentsAreGoneFromTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	db := openAt(t, path)
	k := keeping(t, db, KeeperOptions{})
	marks := map[int][]byte{}
	for i := range 5 {
		c := content(i)
		c.At = time.Now().Add(-time.Duration(i) * time.Hour)
		c.Request = noise(40_000)
		packed := pack(c.Request)
		marks[i] = packed[1000:1064]
		add(t, k, c)
	}
	flush(t, k)
	inFile := func() (there []int) {
		var all []byte
		for _, name := range []string{path, path + "-wal"} {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b...)
		}
		for i := range 5 {
			if bytes.Contains(all, marks[i]) {
				there = append(there, i)
			}
		}
		return there
	}
	if diff := cmp.Diff([]int{0, 1, 2, 3, 4}, inFile()); diff != "" {
		t.Fatal(diff)
	}
	ctx := context.Background()
	for _, step := range []struct {
		sentence string
		forget   func() (int, error)
		n        int
		left     []int
	}{
		{"the last 90 minutes", func() (int, error) { return db.ForgetSince(ctx, time.Now().Add(-90*time.Minute)) }, 2, []int{2, 3, 4}},
		{"one call", func() (int, error) {
			ok, err := db.ForgetCall(ctx, content(3).SpanID)
			if !ok {
				return 0, err
			}
			return 1, err
		}, 1, []int{2, 4}},
		{"a call of which nothing is kept", func() (int, error) {
			ok, err := db.ForgetCall(ctx, content(3).SpanID)
			if ok {
				return 1, err
			}
			return 0, err
		}, 0, []int{2, 4}},
		{"all", func() (int, error) { return db.ForgetSince(ctx, time.Time{}) }, 2, nil},
	} {
		n, err := step.forget()
		if err != nil || n != step.n {
			t.Errorf("%s: %d forgotten, want %d: %v", step.sentence, n, step.n, err)
		}
		if diff := cmp.Diff(step.left, keptOf(t, db, 5)); diff != "" {
			t.Errorf("%s: %s", step.sentence, diff)
		}
		if diff := cmp.Diff(step.left, inFile()); diff != "" {
			t.Errorf("%s, in the file: %s", step.sentence, diff)
		}
	}
}

// What another process forgets makes room at once.
func TestWhatOthersForgetMakesRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	db, other := openAt(t, path), openAt(t, path)
	k := keeping(t, db, KeeperOptions{Size: 100_000})
	for i := range 4 {
		c := content(i)
		c.Request = noise(20_000)
		add(t, k, c)
	}
	flush(t, k)
	if _, err := other.ForgetSince(context.Background(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		c := content(10 + i)
		c.Request = noise(20_000)
		add(t, k, c)
		flush(t, k)
	}
	if diff := cmp.Diff([]int{10, 11, 12, 13}, keptOf(t, db, 20)); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkKeep(b *testing.B) {
	db := openAt(b, filepath.Join(b.TempDir(), "weir.db"))
	k := keeping(b, db, KeeperOptions{Size: 64 << 20})
	request := []byte(strings.Repeat(`{"role":"user","content":"The quick brown fox jumps over the lazy dog"},`, 700)) // some 50 KB
	b.SetBytes(int64(len(request)))
	n := 0
	for b.Loop() {
		c := content(n)
		n++
		c.Request = request
		for !k.Add(int64(len(request)), func() Content { return c }) {
			flush(b, k)
		}
	}
	flush(b, k)
}
