package loadmodel

import "strings"

// Models and their faults, for every test that reads documents.

// The parts of the good model that rows replace.
const (
	dist  = `{"min": 50, "max": 200}`
	sizes = `"input_tokens": ` + dist + `, "output_tokens": 9`
	paced = `"target_qps": 5, "duration_seconds": 60`
)

// changed is a good model with one thing in it replaced.
func changed(old, new string) string {
	const good = `{"load_model": {` + paced + `, "scenarios": [
  {"id": "chat", "weight": 1, ` + sizes + `}]}}`
	return strings.Replace(good, old, new, 1)
}

// replayed is a model of a trace.
func replayed(top, scenario string) string {
	return `{"load_model": {` + top + `, "scenarios": [{"id": "a", "weight": 1` + scenario + `}]}}`
}

// smallFaults are documents that are wrong in one way.
var smallFaults = []struct{ name, text string }{
	{"a comment", changed(`"target_qps"`, "// the rate\n\"target_qps\"")},
	{"a comma too many", changed(`"output_tokens": 9}`, `"output_tokens": 9,}`)},
	{"a comma too few", changed(`"id": "chat",`, `"id": "chat"`)},
	{"single quotes", changed(`"chat"`, `'chat'`)},
	{"NaN", changed("9}", "NaN}")},
	{"a number too large", changed("9}", "1e999}")},
	{"UTF-16", "\xff\xfe{\x00"},
	{"Latin-1", changed("chat", "caf\xe9")},
	{"brackets without end", strings.Repeat("[", 200_000)},
	{"nested deep in extra_body", changed(`"target_qps"`, `"extra_body": {"a": `+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}, "target_qps"`)},
	{"null", "null"},
	{"another document behind", changed("", "") + "{}"},
	{"no wrapper", `{"scenarios": []}`},
	{"load_model is null", `{"load_model": null}`},
	{"rate 0", changed("5", "0")},
	{"a negative rate", changed("5", "-5")},
	{"an enormous rate", changed("5", "1e12")},
	{"a duration of 0", changed("60", "0")},
	{"a duration of ages", changed("60", "1e12")},
	{"a duration in words", changed("60", `"1m"`)},
	{"half a token", changed("9}", "9.5}")},
	{"no tokens", changed("9}", "0}")},
	{"too many tokens", changed("9}", "1e9}")},
	{"half a turn", changed("9}", `9, "turns": 1.5}`)},
	{"a million turns", changed("9}", `9, "turns": {"min": 1, "max": 1000000}}`)},
	{"negative thinking", changed("9}", `9, "think_seconds": -1}`)},
	{"thinking by zipf", changed("9}", `9, "think_seconds": {"distribution": "zipf", "max": 5}}`)},
	{"thinking by lognormal from 0", changed("9}", `9, "think_seconds": {"distribution": "lognormal", "min": 0, "max": 5}}`)},
	{"uniform without min", changed(dist, `{"max": 200}`)},
	{"uniform without max", changed(dist, `{"min": 200}`)},
	{"a constant of two values", changed(dist, `{"distribution": "constant", "min": 1, "max": 2}`)},
	{"a constant of none", changed(dist, `{"distribution": "constant"}`)},
	{"a negative constant", changed(dist, `{"distribution": "constant", "value": -5}`)},
	{"normal without spread", changed(dist, `{"distribution": "normal", "mean": 5, "stddev": 0}`)},
	{"exponential without mean", changed(dist, `{"distribution": "exponential", "max": 9}`)},
	{"zipf without max", changed(dist, `{"distribution": "zipf"}`)},
	{"zipf too steep", changed(dist, `{"distribution": "zipf", "max": 9, "exponent": 1e9}`)},
	{"lognormal with p99 and sigma", changed(dist, `{"distribution": "lognormal", "median": 5, "sigma": 1, "p99": 9}`)},
	{"lognormal with p99 below its median", changed(dist, `{"distribution": "lognormal", "median": 5, "p99": 5}`)},
	{"quantiles of one", changed(dist, `{"quantiles": [[0, 1]]}`)},
	{"quantiles without pairs", changed(dist, `{"quantiles": [1, 2]}`)},
	{"quantiles of percents", changed(dist, `{"quantiles": [[0, 1], [50, 2]]}`)},
	{"quantiles that begin late", changed(dist, `{"quantiles": [[0.1, 1], [1, 2]]}`)},
	{"quantiles below 0", changed(dist, `{"quantiles": [[0, -1], [1, 2]]}`)},
	{"quantiles out of reach", changed(dist, `{"quantiles": [[0, 1], [1, 20]], "min": 50}`)},
	{"a list for a distribution", changed(dist, `[50, 200]`)},
	{"weight above 1", changed(`"weight": 1`, `"weight": 1.5`)},
	{"weights just off", changed(`"weight": 1`, `"weight": 0.9989`)},
	{"a scenario that is text", changed(`"scenarios": [`, `"scenarios": ["chat", `)},
	{"id missing", changed(`"id": "chat", `, "")},
	{"an unknown session", changed("9}", `9, "session": "flat"}`)},
	{"an unknown corpus", changed("9}", `9, "corpus": "poems"}`)},
	{"half a tool", changed("9}", `9, "tools": 0.5}`)},
	{"stream as text", changed("9}", `9, "stream": "yes"}`)},
	{"a rule that is a number", changed("9}", `9, "match": "turns + 1"}`)},
	{"a rule about what is not known", changed("9}", `9, "match": "mode == \"x\""}`)},
	{"a rule that ends early", changed("9}", `9, "match": "turns >"}`)},
	{"a limit of nothing", changed("9}", `9, "limit": {}}`)},
	{"a limit taken away", changed("9}", `9, "limit": {"rps": "off"}}`)},
	{"a limit that is a number", changed("9}", `9, "limit": 5}`)},
	{"an unknown limit", changed("9}", `9, "limit": {"concurency": 5}}`)},
	{"an unknown limit far from all", changed("9}", `9, "limit": {"velocity": 5}}`)},
	{"a negative limit", changed("9}", "9,\n   \"limit\": {\"rps\": -1}}")},
	{"half a call in flight", changed("9}", `9, "limit": {"concurrency": 1.5}}`)},
	{"a wait in plain seconds", changed("9}", `9, "limit": {"wait": 30}}`)},
	{"a limit that is true", changed("9}", `9, "limit": {"hold": true}}`)},
	{"a limit that is empty", changed("9}", `9, "limit": {"rps": ""}}`)},
	{"rps and rpm", changed("9}", `9, "limit": {"rps": 1, "rpm": 60}}`)},
	{"a limit of each", changed(`"chat"`, `"each", "limit": {"rps": 1}`)},
	{"a bad limit of all", changed(`"target_qps"`, `"limit": {"priority": "urgent"}, "target_qps"`)},
	{"limits that are no list", changed(`"target_qps"`, `"limits": "rps=2", "target_qps"`)},
	{"no limits", changed(`"target_qps"`, `"limits": [], "target_qps"`)},
	{"a limit among limits that is an object", changed(`"target_qps"`, `"limits": [{"rps": 2}], "target_qps"`)},
	{"a mistyped name among limits", changed(`"target_qps"`, `"limits": ["model=x rps=2", "modell=y rps=2"], "target_qps"`)},
	{"a strange name among limits", changed(`"target_qps"`, `"limits": ["velocity=3"], "target_qps"`)},
	{"a bad value among limits", changed(`"target_qps"`, `"limits": ["model=x rps=fast"], "target_qps"`)},
	{"limits of nothing", changed(`"target_qps"`, `"limits": ["model=x"], "target_qps"`)},
	{"a selector twice", changed(`"target_qps"`, `"limits": ["model=x rps=2", "rpm=3 model=x"], "target_qps"`)},
	{"a scenario limited twice", strings.Replace(changed("9}", `9, "limit": {"rps": 2}}`), `"target_qps"`, `"limits": ["scenario=chat rps=3"], "target_qps"`, 1)},
	{"all calls limited twice", changed(`"target_qps"`, `"limits": ["rps=3"], "limit": {"rps": 2}, "target_qps"`)},
	{"a want that is a number", changed("9}", `9, "want": 5}`)},
	{"no wants", changed("9}", `9, "want": []}`)},
	{"a want without a limit", changed("9}", `9, "want": ["ttft p95"]}`)},
	{"a want of too much", changed("9}", `9, "want": ["ttft p95 > 2s"]}`)},
	{"a want of a mistyped figure", changed("9}", `9, "want": ["tpot p50 < 50ms", "tttf p95 < 2s"]}`)},
	{"a want of a strange figure", changed("9}", `9, "want": ["happiness p95 < 2s"]}`)},
	{"a want without a rank", changed("9}", `9, "want": ["ttft < 2s"]}`)},
	{"a want of a rank that is not kept", changed("9}", `9, "want": ["ttft felt p98 < 2s"]}`)},
	{"a want without a unit", changed("9}", `9, "want": ["ttft p95 < 2"]}`)},
	{"a want of no time", changed("9}", `9, "want": ["ttft p95 < 0s"]}`)},
	{"a want of a rank of the error rate", changed("9}", `9, "want": ["error rate p95 < 1%"]}`)},
	{"a want of errors without percent", changed("9}", `9, "want": ["error rate < 0.01"]}`)},
	{"a want of all errors", changed("9}", `9, "want": ["error rate < 101%"]}`)},
	{"a want twice", changed("9}", `9, "want": ["ttft p95 < 2s", "ttft  p95 <2000ms"]}`)},
	{"an impairment that is a number", changed("9}", `9, "impair": 7}`)},
	{"no impairments", changed("9}", `9, "impair": []}`)},
	{"an unknown impairment", changed("9}", `9, "impair": ["cut", "slow"]}`)},
	{"no rows", changed(sizes, `"joint": []`)},
	{"rows that are an object", changed(sizes, `"joint": {"input": 5}`)},
	{"a row of one number", changed(sizes, `"joint": [[5, 5], [5]]`)},
	{"a row of five numbers", changed(sizes, `"joint": [[1, 2, 3, 4, 5]]`)},
	{"rows of several lengths", changed(sizes, `"joint": [[5, 5], [5, 5, 2]]`)},
	{"a row with text", changed(sizes, `"joint": [[5, "5"]]`)},
	{"a row without answer", changed(sizes, `"joint": [[5, 0]]`)},
	{"a row of no turns", changed(sizes, `"joint": [[5, 5, 0]]`)},
	{"a row that thinks for ages", changed(sizes, `"joint": [[5, 5, 2, 1e6]]`)},
	{"rows and input_tokens", changed(`"output_tokens": 9`, `"joint": [[5, 5]]`)},
	{"rows of turns and turns", changed(sizes, `"turns": 3, "joint": [[5, 5, 2]]`)},
	{"rows of think and think_seconds", changed(sizes, `"think_seconds": 3, "joint": [[5, 5, 2, 1]]`)},
	{"a prefix that is a number", changed("9}", `9, "prefix": 5}`)},
	{"a prefix without tokens", changed("9}", `9, "prefix": {"pool": 5}}`)},
	{"a prefix of no pool", changed("9}", `9, "prefix": {"tokens": 5, "pool": 0}}`)},
	{"a prefix longer than a row's prompt", changed(sizes, `"prefix": {"tokens": 90}, "joint": [[500, 5], [100, 5]]`)},
	{"no rates", changed(paced, `"rates": []`)},
	{"rates of 0", changed(paced, `"rates": [{"qps": 0, "seconds": 5}]`)},
	{"a rate without time", changed(paced, `"rates": [{"qps": 1}]`)},
	{"a rate of no time", changed(paced, `"rates": [{"qps": 1, "seconds": 0}]`)},
	{"a rate with a mistyped field", changed(paced, `"rates": [{"qsp": 1, "seconds": 5}]`)},
	{"rates and phases", changed(paced, `"phases": [{"qps": 1, "seconds": 5}], "rates": [{"qps": 1, "seconds": 5}]`)},
	{"rates and a duration", changed(`"target_qps": 5`, `"rates": [{"qps": 1, "seconds": 5}]`)},
	{"a closed loop of nobody", changed(`"target_qps": 5`, `"concurrency": 0`)},
	{"a closed loop without end", changed(paced, `"concurrency": 5`)},
	{"a closed loop with a rate", changed(`"target_qps"`, `"concurrency": 5, "target_qps"`)},
	{"a closed loop with arrivals", changed(`"target_qps": 5`, `"concurrency": 5, "arrivals": {"process": "constant"}`)},
	{"a closed loop with a ramp", changed(`"target_qps": 5`, `"concurrency": 5, "ramp_up_seconds": 5`)},
	{"a budget of nothing", changed(`"target_qps"`, `"budget": {}, "target_qps"`)},
	{"a budget of half a token", changed(`"target_qps"`, `"budget": {"tokens": 0.5}, "target_qps"`)},
	{"a budget of no money", changed(`"target_qps"`, `"budget": {"usd": 0}, "target_qps"`)},
	{"a budget in another currency", changed(`"target_qps"`, `"budget": {"eur": 5}, "target_qps"`)},
	{"a trace that is text", replayed(`"trace": "x.csv"`, "")},
	{"a trace without a file", replayed(`"trace": {"speed": 2}`, "")},
	{"a trace of an empty path", replayed(`"trace": {"file": ""}`, "")},
	{"a trace of an unknown format", replayed(`"trace": {"file": "x", "format": "mooncacke"}`, "")},
	{"a trace too fast", replayed(`"trace": {"file": "x", "speed": 1e9}`, "")},
	{"a trace of no rows", replayed(`"trace": {"file": "x", "limit": 0}`, "")},
	{"a trace and a rate", replayed(`"trace": {"file": "x"}, "target_qps": 5`, "")},
	{"a trace and a warm-up", replayed(`"trace": {"file": "x"}, "warm_up_seconds": 5`, "")},
	{"a trace and lengths", replayed(`"trace": {"file": "x"}`, `, "input_tokens": 5`)},
	{"a trace and two scenarios", replayed(`"trace": {"file": "x"}`, `}, {"id": "b", "weight": 0`)},
	{"an api of models and of a scenario", strings.Replace(changed("9}", `9, "api": "chat"}`), `"target_qps"`, `"models": [{"name": "a", "share": 1, "api": "gemini"}], "target_qps"`, 1)},
	{"a model's api that is unknown", changed(`"target_qps"`, `"models": [{"name": "a", "share": 1, "api": "mesages"}], "target_qps"`)},
	{"cv without gamma", changed(`"target_qps"`, `"arrivals": {"cv": 2}, "target_qps"`)},
	{"cv out of range", changed(`"target_qps"`, `"arrivals": {"process": "gamma", "cv": 500}, "target_qps"`)},
	{"phases without a rate", changed(`"target_qps": 5, "duration_seconds": 60`, `"phases": [{"seconds": 5}]`)},
	{"phases of rate 0", changed(`"target_qps": 5, "duration_seconds": 60`, `"phases": [{"qps": 0, "seconds": 5}]`)},
	{"a phase of two rates", changed(`"target_qps": 5, "duration_seconds": 60`, `"phases": [{"qps": 1, "to_qps": 5, "seconds": 5}]`)},
	{"no phases", changed(`"target_qps": 5, "duration_seconds": 60`, `"phases": []`)},
	{"model and models", changed(`"target_qps"`, `"model": "a", "models": ["b"], "target_qps"`)},
	{"shares off", changed(`"target_qps"`, `"models": [{"name": "a", "share": 0.2}], "target_qps"`)},
	{"models without names", changed(`"target_qps"`, `"models": [{"share": 1}], "target_qps"`)},
	{"a negative seed", changed(`"target_qps"`, `"seed": -1, "target_qps"`)},
	{"a seed that is text", changed(`"target_qps"`, `"seed": "1", "target_qps"`)},
	{"extra_body replaces the messages", changed(`"target_qps"`, `"extra_body": {"top_k": 4, "messages": []}, "target_qps"`)},
	{"extra_body is a list", changed(`"target_qps"`, `"extra_body": [], "target_qps"`)},
	{"no calls in flight", changed(`"target_qps"`, `"max_in_flight": 0, "target_qps"`)},
}

// everyField is a model that has all fields, as far as they go together.
const everyField = `{"load_model": {
	"name": "all", "description": "every field", "seed": 18446744073709551615, "api": "messages",
	"models": [{"name": "a", "share": 0.75}, {"name": "b", "share": 0.25, "api": "responses"}],
	"arrivals": {"process": "gamma", "cv": 2.5},
	"phases": [{"name": "warm", "from_qps": 0, "to_qps": 10, "seconds": 30}, {"qps": 10, "seconds": 0.5}],
	"limits": ["model=a* tpm=90000", "key=each rps=1"], "limit": {"rpm": 90, "queue": "none"},
	"warm_up_seconds": 5, "max_in_flight": 100, "timeout_seconds": 90.5,
	"extra_body": {"temperature": 0.70, "stop": ["x", null], "o": {"k": true}},
	"scenarios": [
		{"id": "full", "description": "d", "weight": 0.333, "input_tokens": {"distribution": "normal", "mean": 500, "stddev": 100},
		 "output_tokens": {"distribution": "lognormal", "median": 100, "p99": 1000, "max": 4000},
		 "turns": {"quantiles": [[0, 1], [0.9, 4], [1, 20]]}, "think_seconds": {"distribution": "exponential", "mean": 8, "max": 60},
		 "api": "chat", "model": "c", "session": "flattened", "corpus": "code", "language": "mixed", "tools": 12, "stream": false,
		 "match": "tools > 3", "limit": {"rps": 2, "concurrency": "adaptive:9", "wait": "30s", "cached_weight": "0", "burst_tokens": 1e3, "hold": "off"}},
		{"id": "tool-calls", "weight": 0.333, "input_tokens": {"distribution": "constant", "value": 9}, "output_tokens": {"distribution": "zipf", "max": 50}},
		{"id": "rest", "weight": 0.333, "input_tokens": {"distribution": "lognormal", "median": 5, "sigma": 0.5}, "output_tokens": 1, "think_seconds": 0.25, "session": "live"}]}}`

// withRows, replaying and inALoop are models of the fields that exclude others.
const (
	withRows = `{"load_model": {"rates": [{"qps": 2.5, "seconds": 60}, {"seconds": 0.5, "qps": 0}], "seed": 3,
  "models": [{"name": "a", "share": 0.5, "api": "messages"}, {"name": "b", "share": 0.5}], "api": "responses",
  "budget": {"tokens": 5e6, "usd": 12.5}, "scenarios": [
  {"id": "chat", "weight": 0.5, "joint": [[500, 5], [400, 9]], "turns": {"min": 1, "max": 3}, "think_seconds": 2, "prefix": {"tokens": 384, "pool": 7}},
  {"id": "agent", "weight": 0.25, "joint": [[500, 5, 1, 0], [400, 9, 2, 2.5]], "want": ["ttft p95 < 2s", "error rate <= 1%"]},
  {"id": "rest", "weight": 0.25, "joint": [[500, 5, 1]], "prefix": {"tokens": 9}, "session": "flattened"}]}}`
	replaying = `{"load_model": {"trace": {"file": "t.csv", "format": "azure", "speed": 2, "limit": 300}, "model": "m",
  "scenarios": [{"id": "a", "weight": 1, "corpus": "code"}]}}`
	inALoop = `{"load_model": {"concurrency": 8, "duration_seconds": 60, "warm_up_seconds": 5, "scenarios": [
  {"id": "a", "weight": 1, "input_tokens": 5, "output_tokens": 5}]}}`
)

// goodModels are documents that must be accepted.
var goodModels = []string{
	string(impaired(`"first_token+800ms, cut:1%"`)), string(impaired(`["429:5%", "model=gpt-*: stall+2s"]`)),
	changed("", ""), ruled, everyField, withRows, replaying, inALoop,
	`{"load_model": {"trace": {"file": "/x/t.jsonl"}}}`,
	`{"$schema": "./schema.json", "load_model": {"trace": {"file": "/x/t.jsonl"}}}`,
	changed(paced, `"phases": [{"qps": 0, "seconds": 5}, {"from_qps": 0, "to_qps": 5, "seconds": 5, "name": "up"}]`),
	changed(`"target_qps"`, `"models": ["a", "b"], "arrivals": {}, "extra_body": {}, "target_qps"`),
	changed(`"target_qps"`, `"ramp_up_seconds": 0, "arrivals": {"process": "constant"}, "target_qps"`),
	changed(dist, `{"distribution": "constant", "min": 5, "max": 5}`),
	changed(dist, `{"distribution": "exponential", "mean": 5}`),
	changed(dist, `{"distribution": "lognormal", "median": 5, "sigma": 1, "min": 2}`),
	changed(dist, `{"distribution": "zipf", "max": 5000, "exponent": 20}`),
	changed(dist, `{"distribution": "quantiles", "quantiles": [[0, 0], [0.5, 7], [0.6, 7], [1, 900]], "min": 7}`),
}
