package store

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/store/call"
)

// recordUntilKilled is the child of the test below: it begins a call that never
// ends, records calls at a steady rate, and says after each how many ended.
func recordUntilKilled(dir string) {
	db, err := Open(context.Background(), filepath.Join(dir, "weir.db"), Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	tr, err := NewTracing(context.Background(), db, TracingOptions{Version: "child"})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	open := example(0)
	open.Session = "never ends"
	open.Begin(context.Background(), tr.Provider.Tracer("weir"))
	for n := 1; ; n++ {
		c := example(0)
		c.Turn = n
		record(tr, context.Background(), c)
		fmt.Println(time.Now().UnixNano())
		time.Sleep(2 * time.Millisecond)
	}
}

func TestKillInTheMiddleLosesOnlyTheLastMoment(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), "WEIR_STORE_TEST_CHILD="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var ended []int64
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var ns int64
		if _, err := fmt.Sscan(lines.Text(), &ns); err != nil {
			t.Fatalf("the child said %q", lines.Text())
		}
		ended = append(ended, ns)
		if len(ended) == 700 {
			if err := child.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	killed := ended[len(ended)-1]
	_ = child.Wait() // it was killed

	db := openAt(t, filepath.Join(dir, "weir.db"))
	var verdict string
	if err := db.write.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("integrity check: %q, %v", verdict, err)
	}
	got := all(t, db, "all")
	for i, c := range got {
		if c.Turn != i+1 {
			t.Fatalf("call %d of the database is the child's %d: there is a hole", i+1, c.Turn)
		}
	}
	if len(got) == 0 || len(got) > len(ended) {
		t.Fatalf("%d calls of %d that ended", len(got), len(ended))
	}
	// A call is written at most 250 ms after its end, and what the machine needs
	// to get round to it: it is shared, so the test allows half a second.
	if len(got) < len(ended) {
		if lost := time.Duration(killed - ended[len(got)]); lost > 750*time.Millisecond {
			t.Errorf("calls of the last %v are missing", lost)
		}
	}
	list, err := db.InFlight(context.Background())
	if err != nil || len(list) != 1 || !list[0].Interrupted || list[0].Call.Session != "never ends" {
		t.Errorf("in flight after the kill: %+v, %v; want the open call, interrupted", list, err)
	}
}

func TestFullDiskLosesNothingWhileThereIsRoomToWait(t *testing.T) {
	db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	for i := range 100 {
		record(tr, context.Background(), example(i))
	}
	if err := tr.Recorder.ForceFlush(context.Background()); err != nil {
		t.Fatal(err)
	}
	var pages int
	if err := db.write.QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if _, err := db.write.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages+2)); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		record(tr, context.Background(), example(i))
	}
	err := tr.Recorder.ForceFlush(context.Background())
	if err == nil || !strings.Contains(err.Error(), "the disk is full") || !strings.Contains(err.Error(), "make room") {
		t.Fatalf("error %v, want that the disk is full and what to do", err)
	}
	if n := len(all(t, db, "all")); n < 100 || n > 600 {
		t.Errorf("%d calls in the database of a full disk", n)
	}
	if _, err := db.write.Exec("PRAGMA max_page_count = 1073741823"); err != nil {
		t.Fatal(err)
	}
	stop()
	if n := len(all(t, db, "all")); n != 600 || tr.Recorder.Lost() != 0 {
		t.Errorf("with room again: %d of 600 calls in the database, %d lost", n, tr.Recorder.Lost())
	}
}

func TestWhatCannotBeWrittenIsCounted(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
	tr, err := NewTracing(context.Background(), db, TracingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var pages int
	if err := db.write.QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if _, err := db.write.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages)); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		record(tr, context.Background(), example(i))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := tr.Recorder.Shutdown(ctx); err == nil {
		t.Error("shutdown says nothing of what it could not write")
	}
	n := len(all(t, db, "all"))
	if lost := tr.Recorder.Lost(); lost+int64(n) != 300 || lost == 0 {
		t.Errorf("%d written and %d lost of 300", n, lost)
	}
	record(tr, context.Background(), example(1))
	if lost := tr.Recorder.Lost(); lost+int64(n) != 301 {
		t.Errorf("a call that ends after the shutdown is not counted: %d lost", lost)
	}
}

func TestSeveralProcessesWriteOneDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	var wg sync.WaitGroup
	for range 3 {
		_, tr, stop := tracing(t, path, nil)
		wg.Go(func() {
			for i := range 1000 {
				record(tr, context.Background(), example(i))
			}
			stop()
			if tr.Recorder.Lost() != 0 || tr.Recorder.Written() != 1000 {
				t.Errorf("written %d, lost %d", tr.Recorder.Written(), tr.Recorder.Lost())
			}
		})
	}
	wg.Wait()
	if n := len(all(t, openAt(t, path), "all")); n != 3000 {
		t.Errorf("%d calls of three writers, want 3000", n)
	}
}

func TestOpenSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("these are notes, not a database. ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(dir, "newer.db")
	db := openAt(t, newer)
	if _, err := db.write.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign.db")
	other, err := sql.Open("sqlite3", foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec("CREATE TABLE things (text)"); err != nil {
		t.Fatal(err)
	}
	other.Close()
	whole, err := os.ReadFile(foreign)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged.db")
	if err := os.WriteFile(damaged, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, path string
		o          Options
		want       []string
	}{
		{"a folder", dir, Options{}, []string{"is a folder", "name a file in it"}},
		{"not a database", text, Options{}, []string{"is not an SQLite database", "--db"}},
		{"of a newer weir", newer, Options{}, []string{"newer weir", "schema 99"}},
		{"of a newer weir, to be read", newer, Options{ReadOnly: true}, []string{"newer weir", "schema 99"}},
		{"of another program", foreign, Options{}, []string{"another program's", "--db"}},
		{"of another program, to be read", foreign, Options{ReadOnly: true}, []string{"nothing of weir's"}},
		{"cut off", damaged, Options{}, []string{"is damaged", "--db"}},
		{"below a file", filepath.Join(blocked, "weir.db"), Options{}, []string{"not a directory", "--db"}},
		{"to be read, and not there", filepath.Join(dir, "none.db"), Options{ReadOnly: true}, []string{"does not exist yet", "weir demo"}},
	} {
		db, err := Open(context.Background(), row.path, row.o)
		if err == nil {
			db.Close()
			t.Errorf("%s was opened", row.name)
			continue
		}
		for _, part := range append(row.want, row.path) {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want …%s…", row.name, err, part)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error has several lines", row.name)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "none.db")); !errors.Is(err, os.ErrNotExist) {
		t.Error("opening to read made a file")
	}
}

func TestReadOnlyFolderIsSaid(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ro")
	if err := os.Mkdir(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := Open(context.Background(), filepath.Join(dir, "weir.db"), Options{})
	if os.Getuid() == 0 && err == nil {
		t.Skip("root may write everywhere")
	}
	if err == nil || !strings.Contains(err.Error(), "permission denied") || !strings.Contains(err.Error(), "--db") {
		t.Errorf("error %v", err)
	}
}

func TestReadingNeedsNoRightToWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	_, tr, stop := tracing(t, path, nil)
	record(tr, context.Background(), example(0))
	stop()
	db, err := Open(context.Background(), path, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got := all(t, db, "all"); len(got) != 1 || got[0].Outcome != call.OK {
		t.Errorf("read %v", got)
	}
}

// One span waits for room; while there is none, those after it do not, or a
// full queue would hold up ever more calls. 3,000 that waited would take
// minutes.
func TestAFullQueueHoldsUpOneSpan(t *testing.T) {
	r := &Recorder{queue: make(chan ended, 1)}
	if !r.enqueue(ended{}) {
		t.Fatal("there was room")
	}
	for range 3000 {
		if r.enqueue(ended{}) {
			t.Fatal("there was no room")
		}
	}
	if !r.choked.Load() {
		t.Error("the queue does not count as full")
	}
	<-r.queue
	if !r.enqueue(ended{}) || r.choked.Load() {
		t.Error("with room again a span was lost, or the next one will be")
	}
}
