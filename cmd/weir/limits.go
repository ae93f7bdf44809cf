package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"weir/generator/loadmodel"
	"weir/proxy"
	"weir/shaper"
)

// laneFlags are the flags that limit calls. They set their parts over what a
// load model says.
type laneFlags struct {
	rps, rpm, tpm, concurrency string // of all calls
	rules                      ruleTexts
}

// add adds the flags to a command. The variable of --limit is not that of weir
// calls, which means something else.
func (f *laneFlags) add(fl *pflag.FlagSet) {
	f.addShort(fl)
	fl.Var(&f.rules, "limit", "limit of some calls, as 'scenario=rag rps=2 concurrency=adaptive'; may be repeated, and weir limit --help has the names [$WEIR_LIMITS]")
	named := fl.Lookup("limit")
	named.Annotations = map[string][]string{variableAnnotation: {"WEIR_LIMITS"}}
}

// addShort adds those of the lane of all calls.
func (f *laneFlags) addShort(fl *pflag.FlagSet) {
	fl.StringVar(&f.rps, "rps", "", "requests a second that may go on to the endpoint; the others wait")
	fl.StringVar(&f.rpm, "rpm", "", "the same by the minute")
	fl.StringVar(&f.tpm, "tpm", "", "tokens a minute, input and output together")
	fl.StringVar(&f.concurrency, "concurrency", "", "calls in flight: a number, adaptive, or adaptive:N")
}

// ruleTexts are rules as they are written, several with semicolons between.
type ruleTexts struct {
	texts []string

	// rows takes a plain number, where the flag had that meaning before.
	rows *int
}

// Set adds rules.
func (r *ruleTexts) Set(text string) error {
	if r.rows != nil {
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
			*r.rows = n
			return nil
		}
	}
	for _, rule := range strings.FieldsFunc(text, func(c rune) bool { return c == ';' || c == '\n' }) {
		if strings.TrimSpace(rule) != "" {
			r.texts = append(r.texts, rule)
		}
	}
	return nil
}

func (r *ruleTexts) String() string { return strings.Join(r.texts, "; ") }

// Type is what the help calls a value.
func (r *ruleTexts) Type() string { return "rule" }

// edit sets parts of one rule.
type edit struct {
	who   shaper.Selector
	parts [][2]string // name and value
}

// given says whether any of the flags is.
func (f *laneFlags) given() bool {
	return f.rps+f.rpm+f.tpm+f.concurrency != "" || len(f.rules.texts) > 0
}

// edits reads the flags.
func (f *laneFlags) edits() ([]edit, error) {
	var all []edit
	if f.rps != "" && f.rpm != "" {
		return nil, usagef("--rps and --rpm are one limit; keep one")
	}
	everyCall := edit{}
	for _, part := range [][2]string{{"rps", f.rps}, {"rpm", f.rpm}, {"tpm", f.tpm}, {"concurrency", f.concurrency}} {
		if part[1] == "" {
			continue
		}
		if err := new(shaper.Limit).Set(part[0], part[1]); err != nil {
			return nil, usagef("--%w", err)
		}
		everyCall.parts = append(everyCall.parts, part)
	}
	if len(everyCall.parts) > 0 {
		all = append(all, everyCall)
	}
	for _, text := range f.rules.texts {
		e, err := readEdit(text)
		if err == nil && len(e.parts) == 0 {
			err = fmt.Errorf("limit %q: what is the limit? as in %s rps=2", strings.TrimSpace(text), e.who)
		}
		if err != nil {
			return nil, usagef("--%w", err)
		}
		all = append(all, e)
	}
	return all, nil
}

// readEdit reads a rule of which the parts that it names are meant. Without a
// part it only names calls.
func readEdit(text string) (edit, error) {
	text = strings.TrimSpace(text)
	rule, err := shaper.ParseRule(text)
	if unknown := (*shaper.UnknownName)(nil); errors.As(err, &unknown) {
		if near := loadmodel.Nearest(unknown.Name, unknown.Known); near != "" {
			err = fmt.Errorf("limit %q: %q is no limit; did you mean %s?", text, unknown.Name, near)
		}
	}
	if said := rule.Select.Scenario; err == nil && said != writtenScenario(said) {
		err = fmt.Errorf("limit %q: there is no scenario of that name; did you mean scenario=%s?", text, writtenScenario(said))
	}
	e := edit{who: rule.Select}
	words, _ := shaper.Words(text) // what is wrong with them ParseRule has said
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if slices.Contains(shaper.LimitNames(), name) {
			if value == "" && err == nil {
				err = fmt.Errorf("limit %q: %s has no value; %s=off takes it away", text, name, name)
			}
			e.parts = append(e.parts, [2]string{name, value})
		}
	}
	return e, err
}

// writtenScenario is a scenario's name as calls have it, or a pattern of such.
func writtenScenario(said string) string {
	if strings.ContainsAny(said, `*?[\`) {
		return strings.ToLower(said)
	}
	return proxy.ScenarioName(said)
}

// over puts edits over rules. A rule without a limit is none.
func over(rules []shaper.Rule, edits []edit) []shaper.Rule {
	rules = slices.Clone(rules)
	for _, e := range edits {
		i := slices.IndexFunc(rules, func(r shaper.Rule) bool { return r.Select == e.who })
		if i < 0 {
			i = len(rules)
			rules = append(rules, shaper.Rule{Select: e.who})
		}
		for _, part := range e.parts {
			_ = rules[i].Limit.Set(part[0], part[1]) // it was read, so that it can be set
		}
	}
	return slices.DeleteFunc(rules, func(r shaper.Rule) bool { return r.Limit == shaper.Limit{} })
}

// shaper is one that limits calls as rules and the flags over them say.
func (f *laneFlags) shaper(rules []shaper.Rule) (*shaper.Shaper, error) {
	edits, err := f.edits()
	if err != nil {
		return nil, err
	}
	s := &shaper.Shaper{}
	return s, s.Configure(over(rules, edits))
}

// tellLanes says which lanes hold in a proxy inside this process.
func (a *app) tellLanes(s *shaper.Shaper) {
	for _, limit := range ruleLines(s.Rules()) {
		fmt.Fprintln(a.err, "lane                "+limit)
	}
}

// holdsAt says whether limits hold at a target; what is no weir of the user's
// has none that are known.
func (a *app) holdsAt(ctx context.Context, target string, limits []string) bool {
	if len(limits) == 0 {
		return true
	}
	var said limitsSaid
	for _, r := range a.runningProxies(ctx) {
		if hostOf(r.Listen) == hostOf(target) && r.ask(ctx, http.MethodGet, "/limits", nil, &said) == nil {
			break
		}
	}
	return !slices.ContainsFunc(limits, func(limit string) bool { return !slices.Contains(said.Limits, limit) })
}

// ruleLines are rules as they are written.
func ruleLines(rules []shaper.Rule) []string {
	lines := []string{}
	for _, r := range rules {
		lines = append(lines, r.String())
	}
	return lines
}
