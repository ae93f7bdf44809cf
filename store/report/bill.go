package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/store/call"
)

// automatic is how a scenario was found that is a class of weir's own.
const automatic = "automatic"

// BillSchema names the version of the JSON that a Bill becomes.
const BillSchema = "weir.bill/1"

// Errand is a command that ran, and whose calls were recorded.
type Errand struct {
	Run      string // the run of its calls
	Command  string // its name, without its arguments, which may hold secrets
	Database string
	Exit     int
	Started  time.Time
	Ended    time.Time

	Lost Num    // calls that could not be recorded; absent where nobody can say
	Gone string // where the weir listened that ended before the command did; empty: none did
}

// Bill is what a command's calls came to. Latencies are of successful calls
// only; calls that generate nothing are counted in NoGeneration alone.
type Bill struct {
	Schema    string   `json:"schema"`
	Run       string   `json:"run"`
	Command   string   `json:"command"`
	Database  string   `json:"database"`
	Exit      int      `json:"exit_code"`
	Scenarios []string `json:"scenarios"` // in the order of their names
	Automatic []string `json:"automatic"` // those of them that nobody named: classes of weir's own

	// Wall is how long the command ran. The others are its parts and add up to
	// it: each moment belongs to the first of them that holds for any call.
	Wall       Num `json:"wall_ms"`
	InModel    Num `json:"in_model_ms"`   // a model had the request, or answered it
	Sending    Num `json:"sending_ms"`    // a request that was answered was read, connected and sent
	Unanswered Num `json:"unanswered_ms"` // a call was under way that no model answered
	Queued     Num `json:"queued_ms"`     // weir held a call: its queue, and waits before sending again
	Outside    Num `json:"outside_ms"`    // none of these: tools ran, and people thought

	Calls        int `json:"calls"`
	OK           int `json:"ok_calls"`
	Main         Num `json:"main_calls"` // by the client's own word, as Side is; absent where it says nothing
	Side         Num `json:"side_calls"`
	NoGeneration int `json:"no_generation_calls"`
	Turns        Num `json:"turns"` // of a person, absent where no call names one
	Sessions     Num `json:"sessions"`

	TTFTFelt Percentiles `json:"ttft_felt"`
	TPOT     Percentiles `json:"tpot"`

	Input          Num            `json:"input_tokens"` // sums over the calls that reported them
	CacheRead      Num            `json:"cache_read_tokens"`
	CacheReadShare Num            `json:"cache_read_share"` // of input tokens, where both are known
	CacheWrite     Num            `json:"cache_write_tokens"`
	Output         Num            `json:"output_tokens"`
	Reasoning      Num            `json:"reasoning_tokens"`
	Sources        map[string]int `json:"usage_calls"` // as in a report's tokens

	Failures map[string]int `json:"failed_calls"` // by outcome, marked where they were impaired

	// Calls that could not be recorded, absent where weir ended before the
	// command did. Partial says that the sums are not of all calls.
	Lost    Num    `json:"lost_calls"`
	Partial bool   `json:"partial"`
	Gone    string `json:"gone"` // where the weir listened that ended before the command did; empty: none did

	// Calls that were made worse on purpose: in the sums, and in no latency.
	Impaired int `json:"impaired_calls"`
}

// Seen says whether any call passed weir.
func (b *Bill) Seen() bool { return b.Calls+b.NoGeneration > 0 }

// biller is a bill in the making.
type biller struct {
	bill                             *Bill
	group                            group
	cacheRead, cacheWrite, reasoning mean
	scenarios                        map[string]bool // whether somebody named it
	sessions                         map[string]bool
	turns                            map[turnKey]bool
	purposes                         mean // calls in the main line, of those that say what they are for
	moments                          moments
}

type turnKey struct {
	session string
	turn    int
}

// BillFor adds up the calls of an errand, as the proxy saw them. It fails with
// the first error of calls.
func BillFor(e Errand, calls iter.Seq2[*call.Call, error]) (*Bill, error) {
	b := &Bill{
		Schema: BillSchema, Run: e.Run, Command: e.Command, Database: e.Database, Exit: e.Exit,
		Scenarios: []string{}, Automatic: []string{}, Failures: map[string]int{},
		Lost: e.Lost, Partial: !e.Lost.Known || e.Lost.V > 0, Gone: e.Gone,
	}
	t := biller{bill: b, scenarios: map[string]bool{}, sessions: map[string]bool{}, turns: map[turnKey]bool{}}
	for c, err := range calls {
		if err != nil {
			return nil, err
		}
		if c.Side == call.Proxy {
			t.add(c)
		}
	}
	t.close(e)
	return b, nil
}

func (t *biller) add(c *call.Call) {
	b := t.bill
	if !c.WantsAnswer() {
		b.NoGeneration++
		return
	}
	failed := string(c.Outcome)
	if c.Worsened() {
		b.Impaired++
		failed += " " + impairedMark
		untimed := *c
		untimed.FirstToken, untimed.LastToken = call.Mark{}, call.Mark{}
		t.group.add(pair{proxy: &untimed})
	} else {
		t.group.add(pair{proxy: c})
	}
	if c.Outcome != call.OK {
		b.Failures[failed]++
	}
	if c.Scenario != "" {
		t.scenarios[c.Scenario] = t.scenarios[c.Scenario] || c.ScenarioFrom != automatic
	}
	if c.Session != "" {
		t.sessions[c.Session] = true
	}
	main := c.Purpose == "" || c.Purpose == "main" || c.Purpose == "subagent"
	switch {
	case c.Purpose == "":
	case main:
		t.purposes.add(1)
	default:
		t.purposes.add(0)
	}
	if main && c.Turn > 0 {
		t.turns[turnKey{c.Session, c.Turn}] = true
	}
	u := c.Usage
	if u.CacheRead.Known {
		t.cacheRead.add(u.CacheRead.N)
	}
	if u.CacheWrite.Known {
		t.cacheWrite.add(u.CacheWrite.N)
	}
	if u.Reasoning.Known {
		t.reasoning.add(u.Reasoning.N)
	}
	t.moments.add(c)
}

func (t *biller) close(e Errand) {
	b, row := t.bill, t.group.row()
	b.Calls, b.OK = row.Calls, row.OK
	b.TTFTFelt, b.TPOT = row.TTFTFelt, row.TPOT
	b.Input, b.Output, b.CacheReadShare, b.Sources = row.Tokens.Input, row.Tokens.Output, row.Tokens.CacheReadShare, row.Tokens.Sources
	b.CacheRead, b.CacheWrite, b.Reasoning = t.cacheRead.total(), t.cacheWrite.total(), t.reasoning.total()
	for _, name := range slices.Sorted(maps.Keys(t.scenarios)) {
		b.Scenarios = append(b.Scenarios, name)
		if !t.scenarios[name] {
			b.Automatic = append(b.Automatic, name)
		}
	}
	b.Sessions, b.Turns = some(len(t.sessions)), some(len(t.turns))
	if p := t.purposes; p.n > 0 {
		b.Main, b.Side = N(float64(p.sum)), N(float64(p.n-p.sum))
	}
	b.split(&t.moments, span{e.Started, e.Ended})
}

// some is a count of what calls may name; absent when none did.
func some(n int) Num {
	if n == 0 {
		return Num{}
	}
	return N(float64(n))
}

// JSON writes the bill as REPORT.md describes it.
func (b *Bill) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(b)
}

// Text writes the bill for people, in at most ten lines. It says nothing of
// calls when none was seen.
func (b *Bill) Text(w io.Writer, s Style) {
	head := []string{plain(b.Command) + " ran " + lasted(b.Wall), fmt.Sprint("exit ", b.Exit)}
	if len(b.Scenarios) > 0 {
		head = append(head, "scenario "+b.scenariosText())
	}
	fmt.Fprintln(w, "weir: "+strings.Join(append(head, "run "+b.Run), ", "))
	if b.Partial {
		fmt.Fprintln(w, "  !       "+s.paint(red, b.partialText()))
	}
	if !b.Seen() {
		return
	}
	line := func(name, format string, a ...any) {
		fmt.Fprintf(w, "  %-8s"+format+"\n", append([]any{name}, a...)...)
	}
	line("calls", "%s", b.callsText())
	if b.Calls == 0 {
		return
	}
	line("time", "%s", b.timeText())
	few := ""
	if slices.Contains(b.TTFTFelt.Unreliable, "p50") && b.TTFTFelt.N > 0 {
		few = "   * few calls"
	}
	line("ttft", "felt p50 %s, max %s%s", mark(b.TTFTFelt, "p50", b.TTFTFelt.P50), ms(b.TTFTFelt.Max), s.paint(faint, few))
	line("tpot", "p50 %s%s", mark(b.TPOT, "p50", b.TPOT.P50), rateText(b.TPOT.P50))
	line("tokens", "%s", b.tokensText())
	if len(b.Failures) > 0 {
		line("failed", "%s", s.paint(red, b.failuresText()))
	}
	if b.Impaired > 0 {
		line("!", "%s", s.paint(yellow, were(b.Impaired, "call")+" made worse on purpose: they are in no latency"))
	}
	if n := b.Sources[string(call.UsageMissing)]; n > 0 {
		line("!", "%s", s.paint(yellow, fmt.Sprintf("%d of %s gave no usage, or not to its end: what they did not give is not in the sums", n, count(b.Calls, "call"))))
	}
	if n := b.Sources[string(call.UsageSuspicious)]; n > 0 {
		line("!", "%s", s.paint(yellow, fmt.Sprintf("%d of %s reported usage that contradicts their stream", n, count(b.Calls, "call"))))
	}
}

// partialText says of what the figures are not.
func (b *Bill) partialText() string {
	switch {
	case b.Lost.Known:
		return count(int(b.Lost.V), "call") + " could not be recorded: all figures are of the rest"
	case b.Gone != "":
		return "the weir at " + b.Gone + " ended before the command did: what came later is in no figure"
	}
	return "how many calls could not be recorded is not known: all figures are of those that were"
}

// scenariosText marks those that nobody named.
func (b *Bill) scenariosText() string {
	var all []string
	for _, name := range b.Scenarios {
		if slices.Contains(b.Automatic, name) {
			name += " (" + automatic + ")"
		}
		all = append(all, plain(name))
	}
	return strings.Join(all, ", ")
}

func (b *Bill) callsText() string {
	text := fmt.Sprint(b.Calls)
	if b.Main.Known {
		text += fmt.Sprintf(" (%s main, %s side)", whole(b.Main), whole(b.Side))
	}
	for _, part := range []struct {
		n    Num
		noun string
	}{{b.Turns, "turn"}, {b.Sessions, "session"}, {some(b.NoGeneration), "other request"}} {
		if part.n.Known {
			text += ", " + count(int(part.n.V), part.noun)
		}
	}
	return text
}

func (b *Bill) tokensText() string {
	in, out := "in "+grouped(b.Input), "out "+grouped(b.Output)
	var cache []string
	if b.CacheReadShare.Known {
		cache = append(cache, percent(b.CacheReadShare)+" read from cache")
	}
	if b.CacheWrite.Known {
		cache = append(cache, grouped(b.CacheWrite)+" written to it")
	}
	if len(cache) > 0 {
		in += " (" + strings.Join(cache, ", ") + ")"
	}
	if b.Reasoning.Known {
		out += " (" + grouped(b.Reasoning) + " of reasoning)"
	}
	return in + ", " + out
}

// failuresText names the outcomes, the most frequent first.
func (b *Bill) failuresText() string {
	names := slices.SortedFunc(maps.Keys(b.Failures), func(x, y string) int {
		return cmp.Or(b.Failures[y]-b.Failures[x], strings.Compare(x, y))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", b.Failures[name], name)
	}
	return strings.Join(names, ", ")
}

// rateText is a time per token as tokens a second.
func rateText(tpot Num) string {
	if !tpot.Known || tpot.V <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%.0f tokens/s)", 1000/tpot.V)
}

// grouped writes a count with its thousands apart.
func grouped(n Num) string {
	text := whole(n)
	if !n.Known {
		return text
	}
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// lasted writes milliseconds of which the seconds matter.
func lasted(n Num) string {
	if n.V < 1000 {
		return ms(n)
	}
	return seconds(N(n.V / 1000))
}

func ratio(part, all Num) Num {
	if !part.Known || !all.Known || all.V == 0 {
		return Num{}
	}
	return N(part.V / all.V)
}
