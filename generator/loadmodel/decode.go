package loadmodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"weir/proxy/wire"
)

// longest is the largest file that is taken for a load model.
const longest = 16 << 20

// Read reads a load model's file.
func Read(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{File: path, Problem: reason(err)}
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, &Error{File: path, Problem: reason(err)}
	case info.IsDir():
		return nil, &Error{File: path, Problem: "is a directory; name the file in it"}
	case info.Size() > longest:
		return nil, &Error{File: path, Problem: fmt.Sprintf("is %d MiB long; a load model has at most %d MiB. Is it a trace or a dataset?", info.Size()>>20, longest>>20)}
	}
	data, err := io.ReadAll(io.LimitReader(f, longest+1))
	if err != nil {
		return nil, &Error{File: path, Problem: reason(err)}
	}
	return Decode(path, data)
}

// reason is what the system says, without the path around it.
func reason(err error) string {
	if pe, ok := err.(*os.PathError); ok { //nolint:errorlint // os gives it unwrapped
		err = pe.Err
	}
	return err.Error()
}

// Decode reads a load model. name is for its errors, which are *Error: the
// first fault, with its place and what to do.
func Decode(name string, data []byte) (*Model, error) {
	source := bytes.Clone(data)
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	d := &document{name, data}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &Error{File: name, Problem: `is empty; a load model begins with {"load_model": {`}
	}
	root, err := d.parse()
	if err != nil {
		return nil, err
	}
	r := &reader{d: d}
	m := r.root(root)
	if r.err != nil {
		return nil, r.err
	}
	m.Source = source
	return m, nil
}

// reader turns nodes into a model. After the first fault it does nothing.
type reader struct {
	d   *document
	err *Error
}

func (r *reader) fail(at int, format string, a ...any) {
	if r.err == nil {
		r.err = r.d.fault(at, format, a...)
	}
}

// setters are what an object's fields do, by their names.
type setters map[string]func(node)

// object reads an object whose fields are known. Names of fields that are
// planned but not carried out yet are in later.
func (r *reader) object(n node, what string, s setters, later ...string) map[string]node {
	if r.err != nil {
		return nil
	}
	if n.kind != "object" {
		r.fail(n.at, "%s is %s; want an object in braces", what, article(n.kind))
		return nil
	}
	given := map[string]node{}
	for _, m := range n.members {
		set, known := s[m.name]
		switch {
		case known:
			given[m.name] = m.value
			set(m.value)
		case slices.Contains(later, m.name):
			r.fail(m.at, "%s: field %q is not supported yet; take it out", what, m.name)
		default:
			names := make([]string, 0, len(s))
			for name := range s {
				names = append(names, name)
			}
			slices.Sort(names)
			if near := nearest(m.name, names); near != "" {
				r.fail(m.at, "%s: unknown field %q: did you mean %q?", what, m.name, near)
			} else {
				r.fail(m.at, "%s: unknown field %q; the fields are %s", what, m.name, strings.Join(names, ", "))
			}
		}
		if r.err != nil {
			return given
		}
	}
	return given
}

// need fails unless the object gives the fields.
func (r *reader) need(n node, what string, given map[string]node, names ...string) {
	for _, name := range names {
		if _, ok := given[name]; !ok {
			r.fail(n.at, "%s: field %q is missing", what, name)
		}
	}
}

func (r *reader) root(n node) *Model {
	m := &Model{}
	inner := n
	if n.kind == "object" && !hasMember(n, "scenarios") {
		given := r.object(n, "the document", setters{"load_model": func(v node) { inner = v }})
		r.need(n, "the document", given, "load_model")
	}
	r.model(inner, m)
	return m
}

func hasMember(n node, name string) bool {
	return slices.ContainsFunc(n.members, func(m member) bool { return m.name == name })
}

func (r *reader) model(n node, m *Model) {
	what := "load_model"
	given := r.object(n, what, setters{
		"name":             func(v node) { m.Name = r.string(v, "name") },
		"description":      func(v node) { m.Description = r.string(v, "description") },
		"scenarios":        func(v node) { r.scenarios(v, m) },
		"target_qps":       func(v node) { m.TargetQPS = r.positive(v, "target_qps") },
		"duration_seconds": func(v node) { m.Duration = r.seconds(v, "duration_seconds", false) },
		"ramp_up_seconds":  func(v node) { m.RampUp = r.seconds(v, "ramp_up_seconds", true) },
		"arrivals":         func(v node) { r.arrivals(v, m) },
		"phases":           func(v node) { r.phases(v, m) },
		"seed":             func(v node) { m.Seed, m.HasSeed = uint64(r.whole(v, "seed", 0)), true },
		"api":              func(v node) { m.API = r.api(v) },
		"model":            func(v node) { m.Model = r.string(v, "model") },
		"models":           func(v node) { r.models(v, m) },
		"warm_up_seconds":  func(v node) { m.WarmUp = r.seconds(v, "warm_up_seconds", true) },
		"max_in_flight":    func(v node) { m.MaxInFlight = r.whole(v, "max_in_flight", 1) },
		"timeout_seconds":  func(v node) { m.Timeout = r.seconds(v, "timeout_seconds", false) },
		"extra_body":       func(v node) { m.ExtraBody = r.extra(v) },
	}, "concurrency", "rates", "budget", "trace")
	if r.err != nil {
		return
	}
	r.need(n, what, given, "scenarios")
	if _, phased := given["phases"]; phased {
		for _, name := range []string{"target_qps", "duration_seconds", "ramp_up_seconds"} {
			if v, both := given[name]; both {
				r.fail(v.at, "%s and phases are both given; phases replace it", name)
			}
		}
	} else {
		r.need(n, what, given, "target_qps", "duration_seconds")
		if m.RampUp > m.Duration {
			r.fail(given["ramp_up_seconds"].at, "ramp_up_seconds %g is longer than duration_seconds %g", m.RampUp.Seconds(), m.Duration.Seconds())
		}
	}
	if v, both := given["models"]; both && m.Model != "" {
		r.fail(v.at, "model and models are both given; keep one")
	}
}

func (r *reader) scenarios(n node, m *Model) {
	if n.kind != "array" || len(n.items) == 0 {
		r.fail(n.at, "scenarios is %s; want a list of at least one scenario", describe(n))
		return
	}
	var sum float64
	seen := map[string]bool{}
	for _, item := range n.items {
		var s Scenario
		r.scenario(item, &s)
		if r.err != nil {
			return
		}
		if seen[s.ID] {
			r.fail(item.at, "scenario %q stands twice; ids are unique", s.ID)
			return
		}
		seen[s.ID] = true
		sum += s.Weight
		m.Scenarios = append(m.Scenarios, s)
	}
	if math.Abs(sum-1) > 0.001 {
		r.fail(n.at, "the weights of the %d scenarios sum to %.4g; want 1", len(m.Scenarios), sum)
	}
}

func describe(n node) string {
	if n.kind == "array" && len(n.items) == 0 {
		return "empty"
	}
	return article(n.kind)
}

var idPattern = regexp.MustCompile(`^[a-z0-9_.-]+$`)

func (r *reader) scenario(n node, s *Scenario) {
	*s = Scenario{Turns: Constant(1), ThinkSeconds: Constant(0), Stream: true, Language: "en"}
	what := "scenario"
	for _, m := range n.members {
		if m.name == "id" && m.value.kind == "string" {
			what = fmt.Sprintf("scenario %q", m.value.value)
		}
	}
	in := func(field string) string { return what + ": " + field }
	given := r.object(n, what, setters{
		"id": func(v node) {
			if s.ID = r.string(v, "id"); !idPattern.MatchString(s.ID) {
				r.fail(v.at, "id %q: want small letters, digits, dots, dashes and underscores", s.ID)
			}
		},
		"description": func(v node) { s.Description = r.string(v, in("description")) },
		"weight": func(v node) {
			if s.Weight = r.number(v, in("weight")); s.Weight < 0 || s.Weight > 1 {
				r.fail(v.at, "%s %g: want 0 to 1", in("weight"), s.Weight)
			}
		},
		"input_tokens":  func(v node) { s.InputTokens = r.dist(v, in("input_tokens"), 1) },
		"output_tokens": func(v node) { s.OutputTokens = r.dist(v, in("output_tokens"), 1) },
		"turns":         func(v node) { s.Turns = r.dist(v, in("turns"), 1) },
		"think_seconds": func(v node) { s.ThinkSeconds = r.dist(v, in("think_seconds"), 0) },
		"api":           func(v node) { s.API = r.api(v) },
		"model":         func(v node) { s.Model = r.string(v, in("model")) },
		"session":       func(v node) { s.Flattened = r.oneOf(v, in("session"), "live", "flattened") == "flattened" },
		"corpus":        func(v node) { s.Corpus = r.oneOf(v, in("corpus"), "prose", "rag", "agent", "code") },
		"language":      func(v node) { s.Language = r.oneOf(v, in("language"), "en", "zh", "mixed") },
		"tools":         func(v node) { s.Tools = r.whole(v, in("tools"), 0) },
		"stream":        func(v node) { s.Stream = r.boolean(v, in("stream")) },
		"match":         func(v node) { r.match(v, in("match"), s) },
		"want":          func(v node) { s.Want = r.strings(v, in("want")) },
	}, "prefix", "joint", "limit")
	r.need(n, what, given, "id", "weight", "input_tokens", "output_tokens")
	if s.Corpus == "" {
		s.Corpus = guessCorpus(s)
	}
}

// guessCorpus reads a scenario's id for what its prompts are like, where the
// file does not say.
func guessCorpus(s *Scenario) string {
	for _, word := range []struct{ part, corpus string }{
		{"rag", "rag"}, {"retriev", "rag"}, {"agent", "agent"}, {"tool", "agent"}, {"code", "code"},
	} {
		if strings.Contains(s.ID, word.part) {
			return word.corpus
		}
	}
	return "prose"
}

func (r *reader) match(v node, what string, s *Scenario) {
	s.Match = r.string(v, what)
	if r.err != nil {
		return
	}
	compiled, err := compile(s.Match)
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		r.fail(v.at, "%s: %s", what, line)
		return
	}
	s.match = compiled
}

func (r *reader) arrivals(v node, m *Model) {
	given := r.object(v, "arrivals", setters{
		"process": func(v node) {
			m.Arrivals.Process = r.oneOf(v, "arrivals: process", "poisson", "constant", "gamma")
		},
		"cv": func(v node) { m.Arrivals.CV = r.positive(v, "arrivals: cv") },
	})
	_, cv := given["cv"]
	if gamma := m.Arrivals.Process == "gamma"; gamma != cv && r.err == nil {
		r.fail(v.at, "arrivals: cv belongs to the process gamma, and gamma needs it")
	}
}

func (r *reader) phases(v node, m *Model) {
	if v.kind != "array" || len(v.items) == 0 {
		r.fail(v.at, "phases is %s; want a list of at least one phase", describe(v))
		return
	}
	for _, item := range v.items {
		var p Phase
		given := r.object(item, "phase", setters{
			"name":     func(v node) { p.Name = r.string(v, "phase: name") },
			"qps":      func(v node) { p.FromQPS = r.notNegative(v, "phase: qps"); p.ToQPS = p.FromQPS },
			"from_qps": func(v node) { p.FromQPS = r.notNegative(v, "phase: from_qps") },
			"to_qps":   func(v node) { p.ToQPS = r.notNegative(v, "phase: to_qps") },
			"seconds":  func(v node) { p.Length = r.seconds(v, "phase: seconds", false) },
		})
		r.need(item, "phase", given, "seconds")
		_, flat := given["qps"]
		_, from := given["from_qps"]
		_, to := given["to_qps"]
		if r.err == nil && (flat == (from || to) || from != to) {
			r.fail(item.at, "phase: want either qps, or from_qps and to_qps")
		}
		m.Phases = append(m.Phases, p)
	}
	if r.err == nil && m.PeakQPS() == 0 {
		r.fail(v.at, "phases: the rate is 0 in all of them")
	}
}

func (r *reader) models(v node, m *Model) {
	if v.kind != "array" || len(v.items) == 0 {
		r.fail(v.at, "models is %s; want a list of names, or of objects with name and share", describe(v))
		return
	}
	var sum float64
	for _, item := range v.items {
		s := Share{Share: 1 / float64(len(v.items))}
		if item.kind == "string" {
			s.Name = r.string(item, "models")
		} else {
			given := r.object(item, "models", setters{
				"name":  func(v node) { s.Name = r.string(v, "models: name") },
				"share": func(v node) { s.Share = r.notNegative(v, "models: share") },
			})
			r.need(item, "models", given, "name", "share")
		}
		sum += s.Share
		m.Models = append(m.Models, s)
	}
	if r.err == nil && math.Abs(sum-1) > 0.001 {
		r.fail(v.at, "the shares of the %d models sum to %.4g; want 1", len(m.Models), sum)
	}
}

func (r *reader) extra(v node) map[string]json.RawMessage {
	if v.kind != "object" {
		r.fail(v.at, "extra_body is %s; want an object in braces", article(v.kind))
		return nil
	}
	all := map[string]json.RawMessage{}
	for _, m := range v.members {
		all[m.name] = bytes.Clone(m.value.raw)
	}
	return all
}

// The readers of plain values.

func (r *reader) string(n node, what string) string {
	s, ok := n.value.(string)
	if !ok || n.kind != "string" {
		r.fail(n.at, "%s is %s; want text in quotes", what, article(n.kind))
	}
	return s
}

func (r *reader) strings(n node, what string) []string {
	if n.kind != "array" {
		r.fail(n.at, "%s is %s; want a list of texts", what, article(n.kind))
	}
	var list []string
	for _, item := range n.items {
		list = append(list, r.string(item, what))
	}
	return list
}

func (r *reader) boolean(n node, what string) bool {
	b, ok := n.value.(bool)
	if !ok {
		r.fail(n.at, "%s is %s; want true or false", what, article(n.kind))
	}
	return b
}

func (r *reader) number(n node, what string) float64 {
	num, ok := n.value.(json.Number)
	if !ok {
		r.fail(n.at, "%s is %s; want a number", what, article(n.kind))
		return 0
	}
	f, err := num.Float64()
	if err != nil || math.IsInf(f, 0) {
		r.fail(n.at, "%s %s: too large a number", what, num)
	}
	return f
}

func (r *reader) notNegative(n node, what string) float64 {
	f := r.number(n, what)
	if f < 0 {
		r.fail(n.at, "%s %g: want 0 or more", what, f)
	}
	return f
}

func (r *reader) positive(n node, what string) float64 {
	f := r.number(n, what)
	if f <= 0 {
		r.fail(n.at, "%s %g: want more than 0", what, f)
	}
	return f
}

func (r *reader) whole(n node, what string, least int) int {
	f := r.number(n, what)
	if f != math.Trunc(f) || f < float64(least) || f > 1<<53 {
		r.fail(n.at, "%s %g: want a whole number of %d or more", what, f, least)
		return 0
	}
	return int(f)
}

func (r *reader) seconds(n node, what string, zero bool) time.Duration {
	read := r.positive
	if zero {
		read = r.notNegative
	}
	f := read(n, what)
	if f > 365*24*3600 {
		r.fail(n.at, "%s %g: longer than a year", what, f)
	}
	return time.Duration(f * float64(time.Second))
}

func (r *reader) oneOf(n node, what string, words ...string) string {
	s := r.string(n, what)
	if r.err == nil && !slices.Contains(words, s) {
		near := ""
		if w := nearest(s, words); w != "" {
			near = fmt.Sprintf(": did you mean %q?", w)
		}
		r.fail(n.at, "%s %q: want one of %s%s", what, s, strings.Join(words, ", "), near)
	}
	return s
}

func (r *reader) api(n node) wire.API {
	return wire.API(r.oneOf(n, "api", string(wire.Chat), string(wire.Completions), string(wire.Responses), string(wire.Messages), string(wire.Gemini)))
}
