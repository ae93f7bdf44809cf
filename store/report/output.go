package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// JSON writes the report as REPORT.md describes it.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// CSV writes a line for each row, absent figures as empty fields, without the
// total.
func (r *Report) CSV(w io.Writer) error {
	head := append([]string{}, r.By...)
	head = append(head, "calls", "ok_calls", "ok_share")
	for _, name := range []string{"ttft_felt", "ttft_upstream", "ttft_response", "ttft_service", "tpot", "queued", "e2e_last_token", "e2e_done"} {
		for _, figure := range []string{"n_calls", "mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "max_ms"} {
			head = append(head, name+"_"+figure)
		}
	}
	head = append(head, "input_mean_tokens", "output_mean_tokens", "input_tokens", "output_tokens", "cache_read_share",
		"tokens_per_event", "stalls", "stalled_ms", "coalesced_calls", "differing_calls",
		"queue_share", "waited_calls", "resent_calls", "endpoint_refusals", "attempts_share")
	out := csv.NewWriter(w)
	if err := out.Write(head); err != nil {
		return err
	}
	for _, row := range r.Rows {
		cells := append([]string{}, row.Group...)
		cells = append(cells, strconv.Itoa(row.Calls), strconv.Itoa(row.OK), field(row.Share))
		for _, p := range []Percentiles{row.TTFTFelt, row.TTFTUpstream, row.TTFTResponse, row.TTFTService, row.TPOT, row.Queued, row.ToLastToken, row.ToDone} {
			cells = append(cells, strconv.Itoa(p.N))
			for _, v := range []Num{p.Mean, p.P50, p.P90, p.P95, p.P99, p.Max} {
				cells = append(cells, field(v))
			}
		}
		t, s := row.Tokens, row.Stream
		for _, v := range []Num{t.InputMean, t.OutputMean, t.Input, t.Output, t.CacheReadShare, s.TokensPerEvent} {
			cells = append(cells, field(v))
		}
		cells = append(cells, strconv.Itoa(s.Stalls), field(s.StalledTime), strconv.Itoa(s.Coalesced), strconv.Itoa(row.Views.Differ),
			field(row.Shaping.QueueShare), strconv.Itoa(row.Shaping.Waited), strconv.Itoa(row.Shaping.Resent), strconv.Itoa(row.Shaping.Refusals), field(row.Shaping.AttemptsShare))
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// field is a figure in a file: empty where it is absent.
func field(n Num) string {
	if !n.Known {
		return ""
	}
	return strconv.FormatFloat(round(n.V), 'f', -1, 64)
}

// Markdown writes the tables as GitHub reads them.
func (r *Report) Markdown(w io.Writer) {
	r.mainTable(0).markdown(w)
	if len(r.Failures) > 0 {
		fmt.Fprintln(w)
		r.failureTable(1 << 20).markdown(w)
		fmt.Fprintln(w)
		for _, e := range r.explained() {
			fmt.Fprintf(w, "- %s: %s %s\n", e.kind, plain(e.what), plain(e.next))
		}
	}
	if lines := r.onsetLines(); len(lines) > 0 {
		fmt.Fprintln(w)
		for _, line := range lines {
			fmt.Fprintln(w, "- "+plain(strings.TrimSpace(line)))
		}
	}
	if len(r.Warnings) > 0 {
		fmt.Fprintln(w)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintln(w, "- "+warning)
	}
}
