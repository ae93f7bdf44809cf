package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"weir/store/call"
)

func TestSchemaIsWrittenDown(t *testing.T) {
	text, err := os.ReadFile("SCHEMA.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		sections[name] = body
	}
	db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
	rows, err := db.write.Query("SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1, 2")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns := map[string]bool{}
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		columns[table+"."+column] = true
		if !strings.Contains(sections[table], "`"+column+"`") {
			t.Errorf("SCHEMA.md does not describe %s.%s", table, column)
		}
	}
	if err := rows.Err(); err != nil || len(columns) < 60 {
		t.Fatalf("only %d columns found, %v", len(columns), err)
	}
	// And nothing that is not there.
	for _, line := range strings.Split(sections["spans"], "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || strings.HasPrefix(cells[1], "---") {
			continue
		}
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
			if !columns["spans."+name[1]] {
				t.Errorf("SCHEMA.md describes spans.%s, which does not exist", name[1])
			}
		}
	}
}

// A call that failed since this machine had nothing left for it is told from one
// that the shaper turned away.
func TestTheDocumentTellsWhatMachinesRunOutOf(t *testing.T) {
	text, err := os.ReadFile("SCHEMA.md")
	if err != nil {
		t.Fatal(err)
	}
	outcome := regexp.MustCompile("(?m)^\\| `outcome` .*$").FindString(string(text))
	for _, ranOut := range []syscall.Errno{syscall.EMFILE, syscall.EADDRNOTAVAIL} {
		c := call.Call{}
		call.NewMeter(&c, nil).End(call.EndUnreachable, ranOut, 1)
		for _, word := range []string{string(c.Outcome), c.ErrorType} {
			if word == "" || !strings.Contains(outcome, "`"+word+"`") {
				t.Errorf("%v ends a call as %s, %s, and SCHEMA.md says %q", ranOut, c.Outcome, c.ErrorType, outcome)
			}
		}
	}
}

func TestQuestionsOfTheDocumentHaveAnswers(t *testing.T) {
	db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	for i := range 5 {
		record(tr, context.Background(), example(i))
	}
	stop()
	text, err := os.ReadFile("SCHEMA.md")
	if err != nil {
		t.Fatal(err)
	}
	queries := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(queries) < 2 {
		t.Fatalf("%d queries found", len(queries))
	}
	for _, q := range queries {
		var n int
		if err := db.read.QueryRow("SELECT count(*) FROM (" + strings.TrimRight(strings.TrimSpace(q[1]), ";") + ")").Scan(&n); err != nil || n == 0 {
			t.Errorf("%d rows, %v:\n%s", n, err, q[1])
		}
	}
}

func TestOlderFileIsBroughtUpToDate(t *testing.T) {
	for from := range len(migrations) + 1 {
		path := filepath.Join(t.TempDir(), "weir.db")
		db, err := connect(context.Background(), path, "rwc")
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range migrations[:from] {
			if _, err := db.Exec(step); err != nil {
				t.Fatal(err)
			}
		}
		if from > 0 {
			for _, insert := range []string{
				"INSERT INTO names (id, name) VALUES (7, 'kept')",
				"INSERT INTO writers (id, pid, started_ns, heartbeat_ns, version) VALUES (3, 1, 1, 1, 'older')",
				"INSERT INTO export_cursor (target, writer, last_id) VALUES ('http://collector', 3, 9)",
				`INSERT INTO runs (id, name, target, seed, version, labels, started_ns, verdict, reasons, partial, planned, sent, not_sent, scenarios)
					VALUES ('7f', 'm', 't', '7', 'older', '{}', 1, 'valid', '[]', 0, 2, 2, 0, '[]')`,
			} {
				if _, err := db.Exec(insert); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := db.Exec(fmt.Sprintf("PRAGMA user_version = %d", from)); err != nil {
			t.Fatal(err)
		}
		db.Close()
		now := openAt(t, path)
		var version, kept int
		if err := now.read.QueryRow("PRAGMA user_version").Scan(&version); err != nil || version != len(migrations) {
			t.Errorf("from version %d to %d, %v", from, version, err)
		}
		if err := now.read.QueryRow("SELECT count(*) FROM names WHERE name = 'kept'").Scan(&kept); err != nil || kept != min(from, 1) {
			t.Errorf("from version %d: what stood in the file is gone: %d, %v", from, kept, err)
		}
		runs, err := now.Runs(context.Background(), "")
		if err != nil || len(runs) != min(from, 1) {
			t.Errorf("from version %d: %d runs, %v", from, len(runs), err)
		}
		sending, err := now.Deliveries(context.Background())
		if err != nil || len(sending) != min(from, 1) {
			t.Errorf("from version %d: %d collectors, %v", from, len(sending), err)
		} else if from > 0 && sending[0] != (Delivery{Target: "http://collector"}) {
			t.Errorf("from version %d: sending went as %+v", from, sending[0])
		}
		openAt(t, path) // a second time changes nothing
	}
}
