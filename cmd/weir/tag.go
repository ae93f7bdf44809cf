package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"weir/proxy"
)

// tagFlags are the flags of weir tag.
type tagFlags struct {
	which
	clear bool
}

func (a *app) tagCommand() *cobra.Command {
	var f tagFlags
	c := &cobra.Command{
		Use:   "tag [SCENARIO]",
		Short: "Switch the scenario that a running proxy gives by default",
		Long: `Gives the requests that nothing names a scenario from now on: no path, no header
and no rule. Without a name it prints the scenario that they get now.`,
		Example: `  weir tag refactor        before you begin with something else
  weir tag
  weir tag --clear`,
		Args: wantArgs(0, 1, ""),
		RunE: func(c *cobra.Command, args []string) error { return a.runTag(c.Context(), args, f) },
	}
	fl := c.Flags()
	fl.BoolVar(&f.clear, "clear", false, "call them untagged again")
	onceOnly(fl, "clear")
	f.which.add(fl)
	return c
}

func (a *app) runTag(ctx context.Context, args []string, f tagFlags) error {
	change := tagChange{}
	if len(args) == 1 {
		if change.Scenario = proxy.ScenarioName(args[0]); change.Scenario == "" {
			return usagef("tag %q: want a name, as refactor; weir tag --clear takes it off", args[0])
		}
	}
	if len(args) == 1 && f.clear {
		return usagef("tag: a name and --clear exclude each other")
	}
	p, err := a.pick(ctx, f.which)
	if err != nil {
		return err
	}
	if len(args) == 0 && !f.clear {
		fmt.Fprintln(a.out, p.Scenario)
		return nil
	}
	var changed tagChanged
	if err := p.ask(ctx, http.MethodPut, "/tag", change, &changed); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s → %s\n", changed.Old, changed.New)
	if !f.clear {
		fmt.Fprintf(a.err, "next: weir report all %s%s\n", shellWords("scenario:"+changed.New), a.dbFlagOf(p.Database))
	}
	return nil
}
