package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/store/call"
)

// impairedCall is a proxy's call that something befell on purpose.
func impairedCall(c *call.Call, what ...string) *call.Call {
	c.Impaired = what
	return c
}

func TestImpairedCallsStandApartFromCleanFigures(t *testing.T) {
	clean := []*call.Call{
		spans(seen("agent", 100), 2, 1), spans(seen("agent", 120), 4, 3), spans(failedCall("agent", call.RateLimited, 429, "slow down"), 6, 5),
		spans(seen("chat", 50), 8, 7),
	}
	want := summary(t, Options{}, clean...)

	slow := spans(impairedCall(seen("agent", 5000), "first_token+4.9s"), 10, 9)
	refused := spans(impairedCall(failedCall("agent", call.RateLimited, 429, "on purpose"), "429+1s"), 12, 11)
	all := append(append([]*call.Call{}, clean...), slow, clientOf(slow, 9, 0), refused, clientOf(refused, 11, 0))
	got := summary(t, Options{}, all...)

	var rows [][]string
	byGroup := map[string]Row{}
	for _, row := range got.Rows {
		rows = append(rows, row.Group)
		byGroup[row.Group[0]] = row
		if row.Impaired != strings.HasSuffix(row.Group[0], " (impaired)") {
			t.Errorf("row %v: impaired %v", row.Group, row.Impaired)
		}
	}
	if diff := cmp.Diff([][]string{{"agent"}, {"agent (impaired)"}, {"chat"}}, rows); diff != "" {
		t.Error(diff)
	}
	for _, row := range want.Rows {
		if diff := cmp.Diff(row, byGroup[row.Group[0]]); diff != "" {
			t.Errorf("impaired calls changed the clean row %v: %s", row.Group, diff)
		}
	}
	if diff := cmp.Diff(want.Total, got.Total); diff != "" {
		t.Errorf("impaired calls changed the total: %s", diff)
	}
	if diff := cmp.Diff(want.Failures, got.Failures[:len(want.Failures)]); diff != "" {
		t.Errorf("impaired calls changed the clean failures: %s", diff)
	}
	last := got.Failures[len(got.Failures)-1]
	if got.Impaired != 2 || len(got.Failures) != 2 || !last.Impaired || last.Group[0] != "agent (impaired)" || !strings.Contains(last.What, "on purpose") {
		t.Errorf("%d impaired calls, failures %+v", got.Impaired, got.Failures)
	}
	if row := byGroup["agent (impaired)"]; row.Calls != 2 || row.OK != 1 || row.TTFTFelt.Max != N(5000) || row.TTFTService.N != 1 {
		t.Errorf("the impaired row has %+v", row)
	}
	var b bytes.Buffer
	got.Text(&b, Style{Width: 120})
	golden(t, "impaired.txt", b.Bytes())
}

// What was drawn for a call and could not be applied did nothing to it.
func TestACallThatNothingBefellIsClean(t *testing.T) {
	missed := func(c *call.Call) *call.Call {
		return impairedCall(c, call.NotApplied("cut@9", "no occasion in this answer"), call.NotApplied("first_token+4.9s", "status 429"))
	}
	told := func(c *call.Call) *call.Call { // before it was known what came of it
		return impairedCall(clientOf(c, 1, 0), "cut@9", "first_token+4.9s")
	}
	ok, refused := spans(seen("chat", 60), 2, 1), spans(failedCall("chat", call.RateLimited, 429, "slow down"), 4, 3)
	want := summary(t, Options{}, ok, clientOf(ok, 1, 0), refused)
	wantBill, err := BillFor(Errand{}, each(ok, refused))
	if err != nil {
		t.Fatal(err)
	}
	ok, refused = missed(spans(seen("chat", 60), 2, 1)), missed(spans(failedCall("chat", call.RateLimited, 429, "slow down"), 4, 3))
	for name, calls := range map[string][]*call.Call{"client first": {told(ok), ok, refused}, "proxy first": {ok, told(ok), refused}} {
		if diff := cmp.Diff(want, summary(t, Options{}, calls...), cmp.AllowUnexported(Report{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	gotBill, err := BillFor(Errand{}, each(ok, refused))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantBill, gotBill); diff != "" {
		t.Error(diff)
	}
	var b bytes.Buffer
	List(&b, []*call.Call{ok}, Style{})
	ListLine(&b, ok, Style{})
	if strings.Contains(b.String(), impairedMark) {
		t.Errorf("it is marked in lists: %s", &b)
	}
	b.Reset()
	Explain(&b, ok, nil, Style{})
	if want := "\nto be impaired on purpose: cut@9 (not applied: no occasion in this answer), first_token+4.9s (not applied: status 429)\n"; !strings.Contains(b.String(), want) {
		t.Errorf("want %q in %s", want, &b)
	}
}

func TestGeneratorsViewOfAnImpairedCallIsNotClean(t *testing.T) {
	p := spans(impairedCall(seen("agent", 5000), "first_token+4.9s"), 2, 1)
	c := clientOf(p, 1, 0)
	c.Impaired = nil // it was not told
	for name, calls := range map[string][]*call.Call{"client first": {c, p}, "proxy first": {p, c}} {
		r := summary(t, Options{}, calls...)
		if len(r.Rows) != 1 || !r.Rows[0].Impaired || r.Total.Calls != 0 || r.Total.TTFTService.N != 0 {
			t.Errorf("%s: %+v, total %+v", name, r.Rows, r.Total)
		}
	}
	told := clientOf(p, 1, 0)
	told.Impaired = []string{"first_token+4.9s"}
	if r := summary(t, Options{}, told); !r.Rows[0].Impaired || r.Total.Calls != 0 {
		t.Errorf("the client's view alone: %+v", r.Rows)
	}
}

func TestRowsByOtherKeysAreMarkedToo(t *testing.T) {
	r := summary(t, Options{By: []string{"run", "model"}}, impairedCall(seen("agent", 1), "cut@2"))
	if diff := cmp.Diff([]string{"(impaired)", "sim-small"}, r.Rows[0].Group); diff != "" {
		t.Error(diff)
	}
}

func TestImpairedCallsAreMarkedInLists(t *testing.T) {
	c := impairedCall(seen("a-scenario-with-a-very-long-name", 100), "first_token+800ms", "cut@7")
	for name, write := range map[string]func(*bytes.Buffer){
		"list": func(b *bytes.Buffer) { List(b, []*call.Call{c}, Style{}) },
		"line": func(b *bytes.Buffer) { ListLine(b, c, Style{Width: 80}) },
		"call": func(b *bytes.Buffer) { Explain(b, c, nil, Style{}) },
	} {
		var b bytes.Buffer
		write(&b)
		if want := map[string]string{"call": "impaired on purpose: first_token+800ms, cut@7"}[name]; !strings.Contains(b.String(), max(want, impairedMark)) {
			t.Errorf("%s: %s", name, b.String())
		}
	}
	var b bytes.Buffer
	ListRow(&b, c)
	heads, fields := strings.Split(ListHead, "\t"), strings.Split(strings.TrimSuffix(b.String(), "\n"), "\t")
	if len(heads) != len(fields) || heads[len(heads)-1] != "impaired" || fields[len(fields)-1] != "first_token+800ms, cut@7" {
		t.Errorf("%d heads, %d fields: %q", len(heads), len(fields), fields)
	}
}

func TestBillCountsImpairedCallsAndTimesOnlyTheOthers(t *testing.T) {
	b, err := BillFor(Errand{Run: "r", Started: time.Now(), Ended: time.Now()}, each(
		seen("agent", 100), impairedCall(seen("agent", 5000), "first_token+4.9s"), impairedCall(failedCall("agent", call.RateLimited, 429, "x"), "429+1s")))
	if err != nil {
		t.Fatal(err)
	}
	if b.Calls != 3 || b.OK != 2 || b.Impaired != 2 || b.TTFTFelt.N != 1 || b.TTFTFelt.Max != N(100) || b.TPOT.N != 1 || b.Input != N(200) {
		t.Errorf("%+v", b)
	}
	if diff := cmp.Diff(map[string]int{"rate_limited (impaired)": 1}, b.Failures); diff != "" {
		t.Error(diff)
	}
	var text bytes.Buffer
	b.Text(&text, Style{})
	if !strings.Contains(text.String(), "2 calls were made worse on purpose: they are in no latency") {
		t.Error(text.String())
	}
}
