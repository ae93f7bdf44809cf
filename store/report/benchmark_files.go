package report

import (
	"fmt"
	"slices"

	"weir/store/call"
)

func ttftOf(s *sample) Num     { return s.ttft }
func tpotOf(s *sample) Num     { return s.tpot }
func lastOf(s *sample) Num     { return s.last }
func doneOf(s *sample) Num     { return s.done }
func perTokenOf(s *sample) Num { return s.perToken }
func inputOf(s *sample) Num    { return s.input }
func outputOf(s *sample) Num   { return s.output }

func bothOf(s *sample) Num { return plus(s.input, s.output) }

func plus(a, b Num) Num {
	if !a.Known || !b.Known {
		return Num{}
	}
	return N(a.V + b.V)
}

// inSeconds is a figure of milliseconds in seconds.
func inSeconds(ms Num) Num {
	if !ms.Known {
		return ms
	}
	return N(ms.V / 1000)
}

// vllm is the flat result of vLLM's benchmark of a server.
func (b *bench) vllm() map[string]any {
	ok := b.count(isOK)
	in, out := b.total(inputOf), b.total(outputOf)
	doc := map[string]any{
		"duration": b.seconds(), "completed": ok, "failed": len(b.calls) - ok, "num_prompts": len(b.calls),
		"total_input_tokens": in, "total_output_tokens": out, "request_throughput": b.perSecond(N(float64(ok))),
		"output_throughput": b.perSecond(out), "total_token_throughput": b.perSecond(plus(in, out)),
	}
	if b.model != "" {
		doc["model_id"] = b.model
	}
	var gaps []float64
	ttfts, itls, inputs, outputs, errors := []Num{}, [][]Num{}, []Num{}, []Num{}, []string{}
	for i := range b.calls {
		s := &b.calls[i]
		ttfts = append(ttfts, inSeconds(s.ttft))
		inputs, outputs, errors = append(inputs, s.input), append(outputs, s.output), append(errors, s.failure)
		var of []Num // null where it is not known
		if s.gaps != nil {
			of = make([]Num, len(s.gaps))
		}
		for j, gap := range s.gaps {
			of[j] = inSeconds(N(gap))
		}
		itls = append(itls, of)
		gaps = append(gaps, s.gaps...)
	}
	doc["ttfts"], doc["itls"], doc["input_lens"], doc["output_lens"], doc["errors"] = ttfts, itls, inputs, outputs, errors
	slices.Sort(gaps)
	for name, values := range map[string][]float64{"ttft": b.figures(ttftOf), "tpot": b.figures(tpotOf), "itl": gaps, "e2el": b.figures(lastOf)} {
		doc["mean_"+name+"_ms"], doc["median_"+name+"_ms"] = average(values), rank(values, 500)
		doc["std_"+name+"_ms"], doc["p99_"+name+"_ms"] = deviation(values), rank(values, 990)
	}
	return doc
}

// aiperf is the aggregated result of AIPerf: an object for each of its tags.
func (b *bench) aiperf() map[string]any {
	doc := map[string]any{}
	spread := func(tag, unit string, values []float64) {
		if len(values) == 0 {
			return // as AIPerf leaves out what it has no values for
		}
		of := map[string]any{
			"unit": unit, "avg": average(values), "min": N(values[0]), "max": N(values[len(values)-1]), "std": deviation(values), "count": len(values),
		}
		for _, p := range []int{1, 5, 10, 25, 50, 75, 90, 95, 99} {
			of[fmt.Sprint("p", p)] = rank(values, 10*p)
		}
		doc[tag] = of
	}
	single := func(tag, unit string, n Num) {
		if n.Known {
			doc[tag] = map[string]any{"unit": unit, "avg": n}
		}
	}
	ok := b.count(isOK)
	spread("time_to_first_token", "ms", b.figures(ttftOf))
	spread("inter_token_latency", "ms", b.figures(tpotOf)) // which AIPerf reckons as we reckon tpot
	spread("request_latency", "ms", b.figures(lastOf))
	spread("input_sequence_length", "tokens", b.figures(inputOf))
	spread("output_sequence_length", "tokens", b.figures(outputOf))
	spread("output_token_throughput_per_user", "tokens/sec/user", b.figures(func(s *sample) Num {
		if !s.tpot.Known || s.tpot.V <= 0 {
			return Num{}
		}
		return N(1000 / s.tpot.V)
	}))
	single("request_count", "requests", N(float64(ok)))
	single("error_request_count", "requests", N(float64(len(b.calls)-ok)))
	single("request_throughput", "requests/sec", b.perSecond(N(float64(ok))))
	single("output_token_throughput", "tokens/sec", b.perSecond(b.total(outputOf)))
	single("benchmark_duration", "sec", b.seconds())
	return doc
}

// guidellm is GuideLLM's report of one benchmark.
func (b *bench) guidellm() map[string]any {
	ok := b.count(isOK)
	incomplete := b.count(func(o call.Outcome) bool { return o == call.ClientGone })
	counts := map[string]any{"successful": ok, "errored": len(b.calls) - ok - incomplete, "incomplete": incomplete, "total": len(b.calls)}
	metrics := map[string]any{"request_totals": counts}
	put := func(name string, summary any) {
		metrics[name] = map[string]any{"successful": summary, "errored": nil, "incomplete": nil, "total": nil}
	}
	spread := func(name string, values []float64) {
		if len(values) == 0 {
			put(name, nil)
			return
		}
		var sum float64
		for _, v := range values {
			sum += v
		}
		std := deviation(values)
		percentiles := map[string]any{}
		for _, p := range []struct {
			name     string
			permille int
		}{{"p001", 1}, {"p01", 10}, {"p05", 50}, {"p10", 100}, {"p25", 250}, {"p50", 500}, {"p75", 750}, {"p90", 900}, {"p95", 950}, {"p99", 990}, {"p999", 999}} {
			percentiles[p.name] = rank(values, p.permille)
		}
		put(name, map[string]any{
			"mean": average(values), "median": rank(values, 500), "std_dev": std, "variance": N(std.V * std.V),
			"min": N(values[0]), "max": N(values[len(values)-1]), "count": len(values), "total_sum": N(sum), "percentiles": percentiles,
		})
	}
	rate := func(name string, n Num) {
		if n = b.perSecond(n); n.Known {
			put(name, map[string]any{"mean": n})
		} else {
			put(name, nil)
		}
	}
	latencies := b.figures(doneOf)
	for i := range latencies {
		latencies[i] /= 1000
	}
	spread("request_latency", latencies)
	spread("time_to_first_token_ms", b.figures(ttftOf))
	spread("inter_token_latency_ms", b.figures(tpotOf)) // a mean over the call, as GuideLLM has it
	spread("time_per_output_token_ms", b.figures(perTokenOf))
	spread("prompt_token_count", b.figures(inputOf))
	spread("output_token_count", b.figures(outputOf))
	spread("total_token_count", b.figures(bothOf))
	rate("requests_per_second", N(float64(ok)))
	rate("output_tokens_per_second", b.total(outputOf))
	rate("tokens_per_second", b.total(bothOf))
	benchmark := map[string]any{"type": "generative_benchmark", "metrics": metrics, "duration": b.seconds()}
	if len(b.calls) > 0 {
		benchmark["start_time"], benchmark["end_time"] = unix(b.begin), unix(b.end)
	}
	return map[string]any{"benchmarks": []any{benchmark}}
}

func unix(i call.Instant) Num { return N(float64(i.Time().UnixMicro()) / 1e6) }
