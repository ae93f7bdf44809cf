// Package report turns calls into what people and programs read: a table by
// scenario, the same as JSON, CSV and Markdown, lists of calls, and the account
// of one call drawn as a bar.
//
// REPORT.md beside this file is the contract of the JSON.
package report

import (
	"iter"
	"time"

	"weir/store/call"
)

// Schema names the version of the JSON that a Report becomes.
const Schema = "weir.report/1"

// Options say how calls are put together. The zero Options group by scenario.
type Options struct {
	// By names what a row is: "scenario", "model", "api", "key", "session",
	// "label", "label:KEY", "upstream", "client", "outcome", "run", or several
	// of them. Empty is scenario.
	By []string

	// Order gives the values of the first group key in the order in which rows
	// are to stand, as a load model lists its scenarios; values that it does
	// not name follow by name.
	Order []string

	// Selection is what the user asked for, repeated in the output.
	Selection string

	// Runs looks up the runs that the calls belong to; nil when nobody knows of
	// any. The first one's scenarios are the order of rows unless Order says
	// another.
	Runs func(ids []string) ([]Run, error)

	// Lost counts the spans that were lost since the first call arrived; nil
	// when nobody counted.
	Lost func(since time.Time) (int64, error)

	// Interrupted counts the calls, of these runs if there are any, that began
	// since the first call and never ended, because the weir that carried them
	// was killed; nil when nobody counted.
	Interrupted func(since time.Time, runs []string) (int, error)
}

// Report is the summary of some calls.
type Report struct {
	Schema    string   `json:"schema"`
	Selection string   `json:"selection"`
	Runs      []Run    `json:"runs"`
	By        []string `json:"by"`
	Rows      []Row    `json:"rows"`

	// Total is all rows together but for those of impaired calls.
	Total Row `json:"total"`

	Failures []Failure `json:"failures"`

	// Wants are what the run's load model wants, with what came of each. They are
	// of reports of one run by scenario; empty of all others.
	Wants []Want `json:"wants"`

	// Endpoints are what was asked of each upstream, model and key, and where
	// it began to refuse.
	Endpoints []Endpoint `json:"endpoints"`

	// Calls left out of every row: those of a warm-up, and those of operations
	// that generate nothing (models, count_tokens, embeddings).
	WarmUp       int `json:"warm_up_calls"`
	NoGeneration int `json:"no_generation_calls"`

	// Calls that were made worse on purpose. They have rows of their own.
	Impaired int `json:"impaired_calls"`

	// Calls that both the proxy and the generator measured.
	BothViews int `json:"both_views_calls"`

	LostSpans   Num      `json:"lost_spans"`
	Interrupted int      `json:"interrupted_calls"` // began, and never ended: weir was killed
	Warnings    []string `json:"warnings"`

	uncounted int // calls of which Endpoints know nothing
}

// Row is one group of calls. Latencies are of successful calls only.
type Row struct {
	Group []string `json:"group"` // a value for each of By; "" where calls had none
	Calls int      `json:"calls"`
	OK    int      `json:"ok_calls"`
	Share Num      `json:"ok_share"`

	// Impaired says that the calls were made worse on purpose, and are no measure
	// of the endpoint; the first value of Group is marked.
	Impaired bool `json:"impaired,omitempty"`

	TTFTFelt     Percentiles `json:"ttft_felt"`     // proxy: first token delivered − request arrived
	TTFTUpstream Percentiles `json:"ttft_upstream"` // proxy: first token received − request sent
	TTFTResponse Percentiles `json:"ttft_response"` // generator: first token − due
	TTFTService  Percentiles `json:"ttft_service"`  // generator: first token − send begun
	TPOT         Percentiles `json:"tpot"`
	Queued       Percentiles `json:"queued"`
	Shaping      Shaping     `json:"shaping"`
	ToLastToken  Percentiles `json:"e2e_last_token"`
	ToDone       Percentiles `json:"e2e_done"`

	Tokens Tokens `json:"tokens"`
	Stream Stream `json:"stream"`
	Views  Views  `json:"views"`

	// Account is the mean time of successful calls in each part; the parts add
	// up to the mean of done − arrived.
	Account Account `json:"account"`
}

// Tokens are what the calls of a row used, by the normal form in which input
// holds cached tokens and output holds reasoning.
type Tokens struct {
	InputMean      Num `json:"input_mean_tokens"` // of the successful calls that reported it
	OutputMean     Num `json:"output_mean_tokens"`
	Input          Num `json:"input_tokens"` // sums, of all calls that reported them
	Output         Num `json:"output_tokens"`
	CacheReadShare Num `json:"cache_read_share"` // of input tokens, where both are known

	// Calls by where their usage comes from: "reported", "injected",
	// "estimated", "missing", "suspicious".
	Sources map[string]int `json:"usage_calls"`
}

// Stream is how the answers of a row came.
type Stream struct {
	TokensPerEvent Num `json:"tokens_per_event"` // over 1: an event is not a token
	Stalled        int `json:"stalled_calls"`
	Stalls         int `json:"stalls"`
	StalledTime    Num `json:"stalled_ms"`
	Coalesced      int `json:"coalesced_calls"`
	NotStreamed    int `json:"not_streamed_calls"`
}

// Views compare the two measurements of the calls that both sides saw.
type Views struct {
	Both   int `json:"calls"`
	Differ int `json:"differing_calls"` // TTFTs apart by more than 2 ms + 2 %
	Worst  Num `json:"largest_difference_ms"`
}

// Account is the mean of each part of the calls' time.
type Account struct {
	Read     Num `json:"read_ms"`
	Queue    Num `json:"queue_ms"`
	Attempts Num `json:"attempts_ms"` // from the first attempt to the one that was answered
	Connect  Num `json:"connect_ms"`
	Send     Num `json:"send_ms"`
	Wait     Num `json:"wait_ms"`
	Generate Num `json:"generate_ms"`
	Tail     Num `json:"tail_ms"`
}

// Failure is one way in which calls of a group failed.
type Failure struct {
	Group   []string     `json:"group"`
	Outcome call.Outcome `json:"outcome"`
	Status  int          `json:"status"` // HTTP; 0 when none came; weir's own where Outcome is Refused
	Calls   int          `json:"calls"`

	Impaired bool `json:"impaired,omitempty"` // the calls were made worse on purpose

	// Of calls that weir's shaper refused: the lane, the limit of it that they
	// waited for, why they were refused, and how long they would have had to
	// wait. Empty and absent for all others.
	Lane          string `json:"lane"`
	Limit         string `json:"limit"`
	Refusal       string `json:"refusal"` // "full queue", "hopeless wait", "deadline"
	WouldWait     Num    `json:"would_wait_mean_ms"`
	WouldWaitMost Num    `json:"would_wait_max_ms"`

	Messages []string `json:"messages"` // the first different ones, at most 3
	What     string   `json:"what"`     // what happened to one of them, in a sentence
	Next     string   `json:"next"`     // what to do next
}

// Summarise puts calls into rows. A call that the proxy and the generator both
// measured is counted once. It fails with the first error of calls, or on a
// group key that does not exist.
func Summarise(calls iter.Seq2[*call.Call, error], o Options) (*Report, error) {
	by, err := groupKeys(o.By)
	if err != nil {
		return nil, err
	}
	r := &Report{
		Schema: Schema, Selection: o.Selection, Runs: []Run{}, By: by.names,
		Warnings: []string{}, Rows: []Row{}, Failures: []Failure{},
	}
	t := tally{report: r, by: by, groups: map[string]*group{}, failures: map[failureKey]*failures{}}
	var join pairer
	onsets := newOnsets()
	for c, err := range calls {
		if err != nil {
			return nil, err
		}
		onsets.add(c)
		if p, ok := join.add(c); ok {
			t.add(p)
		}
	}
	for _, p := range join.rest() {
		t.add(p)
	}
	if err := t.lookUp(&o); err != nil {
		return nil, err
	}
	t.close(o.Order)
	r.judge()
	r.Endpoints = onsets.close()
	r.uncounted = onsets.late + onsets.beyond
	r.warn()
	return r, nil
}
