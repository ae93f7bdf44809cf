package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"weir/shaper"
)

// limitChange is what is sent to change a limit or to take all changes back,
// and limitChanged what comes back of the former.
type (
	limitChange struct {
		Change string `json:"change"` // "scenario=rag rps=2"
		Reset  bool   `json:"reset"`
	}
	limitChanged struct {
		Who string `json:"who"` // "scenario=rag"
		Old string `json:"old"` // "rps=5"; empty: no limit
		New string `json:"new"`
	}
)

// limitsSaid are the limits of a running proxy.
type limitsSaid struct {
	Limits []string `json:"limits"` // as they are written
}

// limitCommandFlags are the flags of weir limit.
type limitCommandFlags struct {
	which
	reset bool
}

func (a *app) limitCommand() *cobra.Command {
	var f limitCommandFlags
	c := &cobra.Command{
		Use:   "limit [all|WHO=VALUE…] [LIMIT=VALUE…]",
		Short: "Show or change the limits of a running proxy",
		Long: `Shows how a running proxy limits calls, or changes it at once: streams under way go
on, and who waits keeps its place. Who is limited is said by scenario, upstream,
model, key or session, each a name or a pattern such as gpt-*; "each" gives every
one a lane of its own. Without that it is all calls. A name with a space in it
stands in quotes: scenario="my rag". LIMIT=off takes a part away, but for hold, of
which it is a value.

The limits, which weir proxy --limit and a load model's "limit" take as well:
  ` + strings.ReplaceAll(strings.TrimSpace(shaper.LimitHelp()), "\n", "\n  "),
		Example: `  weir limit                             what holds now
  weir limit rps=5                       of all calls together
  weir limit scenario=rag concurrency=adaptive wait=30s
  weir limit session=each concurrency=1
  weir limit scenario=rag rps=off
  weir limit --reset                     as the load model and the flags say`,
		Args: wantArgs(0, -1, ""),
		RunE: func(c *cobra.Command, args []string) error { return a.runLimit(c.Context(), args, f) },
	}
	fl := c.Flags()
	fl.BoolVar(&f.reset, "reset", false, "take back what weir limit has changed")
	onceOnly(fl, "reset")
	f.which.add(fl)
	return c
}

// requote puts a name with a space in it back into the quotes that the shell has
// taken off.
func requote(words []string) []string {
	words = slices.Clone(words)
	for i, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if ok && strings.ContainsAny(value, " \t") && !strings.ContainsAny(value, `="`) {
			words[i] = name + "=" + strconv.Quote(value)
		}
	}
	return words
}

func (a *app) runLimit(ctx context.Context, words []string, f limitCommandFlags) error {
	text := strings.Join(requote(words), " ")
	var e edit
	if len(words) > 0 {
		var err error
		if e, err = readEdit(text); err != nil {
			return usage(err)
		}
	}
	if len(words) > 0 && f.reset {
		return usagef("limit: a limit and --reset exclude each other")
	}
	p, err := a.pick(ctx, f.which)
	if err != nil {
		return err
	}
	if len(e.parts) > 0 {
		var changed limitChanged
		if err := p.ask(ctx, http.MethodPut, "/limits", limitChange{Change: text}, &changed); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "%s: %s → %s\n", changed.Who, orNoLimit(changed.Old), orNoLimit(changed.New))
		fmt.Fprintf(a.err, "next: weir lanes%s\n", f.flags())
		return nil
	}
	var said limitsSaid
	method, body := http.MethodGet, any(nil)
	if f.reset {
		method, body = http.MethodPut, limitChange{Reset: true}
	}
	if err := p.ask(ctx, method, "/limits", body, &said); err != nil {
		return err
	}
	found := false
	for _, limit := range said.Limits {
		rule, err := shaper.ParseRule(limit)
		if len(words) == 0 || err == nil && rule.Select == e.who {
			fmt.Fprintln(a.out, limit)
			found = true
		}
	}
	if !found {
		who := "the calls"
		if len(words) > 0 {
			who = e.who.String()
		}
		fmt.Fprintf(a.err, "nothing limits %s\nnext: weir limit %s rps=2%s\n", who, e.who, f.flags())
	}
	return nil
}

func orNoLimit(text string) string {
	if text == "" {
		return "no limit"
	}
	return text
}
