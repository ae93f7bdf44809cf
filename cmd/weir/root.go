package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"weir/shaper"
	"weir/store/report"
)

// app is what every command needs of its surroundings.
type app struct {
	stdio
	env  environment
	hard context.Context // ends when the command is to stop at once

	color string // --color: auto, always, never

	telemetry telemetry // of commands that record

	impair *shaper.Impairer // of the proxies that the command serves; nil: none
}

// newRoot builds the commands. hard ends when a command is to stop at once.
func newRoot(hard context.Context, io stdio, env environment) *cobra.Command {
	a := &app{stdio: io, env: env, hard: hard}
	root := &cobra.Command{
		Use:   "weir",
		Short: "Measure and replay the streamed traffic of LLM APIs",
		Long: `weir is a local sidecar in front of an LLM API. Point the base URL of an agent,
a tool or an SDK at it and work unchanged: it names each streamed request's
scenario, measures its first token and its token usage, and keeps them in
SQLite. It replays load models through itself, and ships an endpoint to try
all of it on.`,
		Example: `  weir demo                                      everything at once, no key, no network
  weir proxy --upstream https://api.anthropic.com
  weir report last`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          badVerb,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.SetFlagErrorFunc(badFlag)
	root.PersistentFlags().StringVar(&a.color, "color", "auto", "colour: auto, always or never; NO_COLOR is respected")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := readVariables(c.Flags(), env); err != nil {
			return err
		}
		switch a.color {
		case "auto", "always", "never":
			return nil
		}
		return usagef("--color %s: want auto, always or never", a.color)
	}
	root.AddCommand(a.demoCommand(), a.proxyCommand(), a.simCommand(), a.planCommand(), a.loadCommand(),
		a.execCommand(), a.tagCommand(), a.limitCommand(), a.lanesCommand(), a.caCommand(), a.doctorCommand(), a.reportCommand(), a.callsCommand(), a.exportCommand(), a.importCommand(), a.mergeCommand(), a.versionCommand())
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	nameVariables(root)
	return root
}

// wantArgs checks the number of arguments; most below 0 is any number.
func wantArgs(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage(&hinted{errors.New(c.CommandPath() + ": " + what + " is missing"), c.CommandPath() + " --help"})
		case most >= 0 && len(args) > most:
			return usage(&hinted{errors.New(c.CommandPath() + ": too many arguments: " + strings.Join(args[most:], " ")), c.CommandPath() + " --help"})
		}
		return nil
	}
}

// terminal says whether w is a terminal, and how wide it is.
func terminal(w any) (columns int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		columns = 100
	}
	return columns, true
}

// terminalRows is how many lines a terminal shows; 0 when it does not say.
func terminalRows(w any) int {
	if f, isFile := w.(*os.File); isFile {
		if _, rows, err := term.GetSize(int(f.Fd())); err == nil {
			return rows
		}
	}
	return 0
}

// style is how text for w is drawn.
func (a *app) style(w any) report.Style {
	columns, tty := terminal(w)
	s := report.Style{Width: columns}
	switch a.color {
	case "always":
		s.Color = true
	case "auto":
		no, set := a.env("NO_COLOR")
		dumb, _ := a.env("TERM")
		s.Color = tty && (!set || no == "") && dumb != "dumb"
	}
	return s
}
