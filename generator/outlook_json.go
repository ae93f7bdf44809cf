package generator

import (
	"encoding/json"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// PlanSchema names the version of the JSON that an Outlook becomes.
const PlanSchema = "weir.plan/1"

type (
	outlookJSON struct {
		Schema    string         `json:"schema"`
		Seed      uint64         `json:"seed,string"`
		Length    float64        `json:"length_s"`
		Sessions  int            `json:"sessions"`
		AtMost    bool           `json:"sessions_at_most"`
		Requests  int            `json:"requests"`
		WarmUp    int            `json:"warm_up_requests"`
		PeakRate  float64        `json:"peak_per_s"`
		Input     int64          `json:"input_tokens"`
		Output    int64          `json:"output_tokens"`
		Unlimited int            `json:"unlimited_requests"`
		Held      *float64       `json:"prefix_reuse_share"`
		AtLeast   bool           `json:"prefix_reuse_at_least"`
		Tokenizer *string        `json:"tokenizer"`
		Counted   []countedJSON  `json:"tokenizers"`
		Estimated bool           `json:"tokenizer_estimated"`
		Cost      costJSON       `json:"cost"`
		InFlight  *inFlightJSON  `json:"in_flight"`
		Every     float64        `json:"moment_s"`
		Moments   []momentJSON   `json:"moments"`
		Scenarios []scenarioJSON `json:"scenarios"`
		Warnings  []warningJSON  `json:"warnings"`
	}
	countedJSON struct {
		Name      string `json:"tokenizer"`
		Estimated bool   `json:"tokenizer_estimated"`
		Input     int64  `json:"input_tokens"`
	}
	costJSON struct {
		Priced   int      `json:"priced_requests"`
		Uncached *float64 `json:"uncached_usd"`
		Held     *float64 `json:"held_usd"`
	}
	inFlightJSON struct {
		TTFT    float64  `json:"stated_ttft_ms"`
		TPOT    float64  `json:"stated_tpot_ms"`
		Mean    *float64 `json:"mean_calls"`
		Peak    int      `json:"peak_calls"`
		PeakAt  float64  `json:"peak_at_s"`
		AtLeast bool     `json:"peak_at_least"`
	}
	momentJSON struct {
		At       float64  `json:"at_s"`
		Starts   int      `json:"starts"`
		InFlight *float64 `json:"in_flight_calls"`
	}
	scenarioJSON struct {
		Scenario     string     `json:"scenario"`
		API          string     `json:"api"`
		Model        string     `json:"model"`
		Sessions     int        `json:"sessions"`
		Requests     int        `json:"requests"`
		Share        float64    `json:"requests_share"`
		Input        spreadJSON `json:"input"`
		Output       spreadJSON `json:"output"`
		Turns        spreadJSON `json:"turns"`
		InputTokens  int64      `json:"input_tokens"`
		OutputTokens int64      `json:"output_tokens"`
		Held         *float64   `json:"prefix_reuse_share"`
		Cost         costJSON   `json:"cost"`
	}
	spreadJSON struct {
		Min   *int `json:"min"`
		P50   *int `json:"p50"`
		P95   *int `json:"p95"`
		P99   *int `json:"p99"`
		Max   *int `json:"max"`
		About bool `json:"about"`
	}
	warningJSON struct {
		Kind     string   `json:"kind"`
		Scenario string   `json:"scenario"`
		Value    *float64 `json:"value"`
		Limit    *float64 `json:"limit"`
		Text     string   `json:"text"`
	}
)

// JSON writes the outlook as store/report/PLAN.md describes it.
func (o *Outlook) JSON(w io.Writer) error {
	j := outlookJSON{
		Schema: PlanSchema, Seed: o.Seed, Length: seconds(o.Length), Sessions: o.Sessions, AtMost: o.SessionsAtMost, Requests: o.Requests, WarmUp: o.WarmUp,
		PeakRate: o.PeakRate, Input: o.Input, Output: o.Output, Unlimited: o.Unlimited, Held: o.heldShare(o.Held, o.Input), AtLeast: o.HeldAtLeast, Estimated: o.Estimated(), Counted: []countedJSON{},
		Cost: o.costJSON(&o.Cost), Every: seconds(o.Every), Moments: []momentJSON{}, Scenarios: []scenarioJSON{}, Warnings: []warningJSON{},
	}
	var names []string
	for _, t := range o.Tokenizers {
		j.Counted = append(j.Counted, countedJSON(t))
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	if all := strings.Join(names, ", "); all != "" {
		j.Tokenizer = &all
	}
	if o.Latency.Known {
		ms := func(d time.Duration) float64 { return digits(float64(d) / 1e6) }
		j.InFlight = &inFlightJSON{TTFT: ms(o.Latency.TTFT), TPOT: ms(o.Latency.TPOT), Peak: o.Most, PeakAt: seconds(o.MostAt), AtLeast: o.MostAtLeast}
		if !o.MostAtLeast {
			j.InFlight.Mean = some(o.InFlight)
		}
	}
	for i, m := range o.Moments {
		moment := momentJSON{At: seconds(time.Duration(i) * o.Every), Starts: m.Starts}
		if o.Latency.Known {
			moment.InFlight = some(m.Busy / o.Every.Seconds())
		}
		j.Moments = append(j.Moments, moment)
	}
	for _, s := range o.Scenarios {
		j.Scenarios = append(j.Scenarios, scenarioJSON{
			s.Scenario, s.API, s.Model, s.Sessions, s.Requests, digits(s.Share), s.Input.json(), s.Output.json(), s.Turns.json(),
			s.InputTokens, s.OutputTokens, o.heldShare(s.HeldTokens, s.InputTokens), o.costJSON(&s.Cost),
		})
	}
	for _, n := range o.Warnings {
		out := warningJSON{Kind: n.Kind, Scenario: n.Scenario, Value: some(n.Value), Text: n.Text}
		if n.Limit != 0 {
			out.Limit = some(n.Limit)
		}
		j.Warnings = append(j.Warnings, out)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(j)
}

// heldShare is what a perfect prefix cache would hold; nil where it is not known.
func (o *Outlook) heldShare(held, of int64) *float64 {
	if o.Unrecorded {
		return nil
	}
	return part(held, of)
}

func (o *Outlook) costJSON(c *Cost) costJSON {
	j := costJSON{Priced: c.Priced}
	if c.Priced > 0 {
		j.Uncached = some(c.Uncached)
	}
	if c.HeldKnown() && !o.Unrecorded {
		j.Held = some(c.Held)
	}
	return j
}

func (s *Spread) json() spreadJSON {
	if s.Max == 0 {
		return spreadJSON{}
	}
	return spreadJSON{&s.Min, &s.P50, &s.P95, &s.P99, &s.Max, s.About}
}

// seconds keep a time's nanoseconds.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e9) / 1e9 }

// digits keeps six digits behind the point: more prints as 0.30000000000000004.
func digits(v float64) float64 { return math.Round(v*1e6) / 1e6 }

func some(v float64) *float64 {
	v = digits(v)
	return &v
}

// part is a share; nil when the whole is 0.
func part(of, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	return some(float64(of) / float64(whole))
}
