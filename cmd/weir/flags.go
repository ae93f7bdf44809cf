package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/generator/loadmodel"
	"weir/store"
)

// variableAnnotation names a flag's variable where it is not the usual one.
const variableAnnotation = "weir_variable"

// variable is the environment variable of a flag.
func variable(f *pflag.Flag) string {
	if named := f.Annotations[variableAnnotation]; len(named) > 0 {
		return named[0]
	}
	return "WEIR_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// onceOnly marks flags that make a command act or destroy: a variable that
// stays set would do it again each time, so they have none.
func onceOnly(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if err := flags.SetAnnotation(name, withoutVariable, nil); err != nil {
			panic(err) // there is no such flag
		}
	}
}

const withoutVariable = "weir: without variable"

// hasVariable says whether a flag is read from the environment too.
func hasVariable(f *pflag.Flag) bool {
	_, without := f.Annotations[withoutVariable]
	return !without && f.Name != "help"
}

// nameVariables adds each flag's variable to its help.
func nameVariables(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !hasVariable(f) || strings.Contains(f.Usage, "$WEIR_") {
			return
		}
		f.Usage += " [$" + variable(f) + "]"
	})
	for _, sub := range c.Commands() {
		nameVariables(sub)
	}
}

// readVariables sets the flags that the command line left alone from their
// variables: flag, then variable, then default.
func readVariables(flags *pflag.FlagSet, env environment) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		value, set := env(variable(f))
		if f.Changed || !set || value == "" || !hasVariable(f) {
			return
		}
		if err := setFlag(flags, f, value); err != nil {
			errs = append(errs, fmt.Errorf("%s=%s: not a value for --%s: %w", variable(f), value, f.Name, err))
		}
	})
	return usage(errors.Join(errs...))
}

// setFlag sets a flag from one string; those that may be repeated take a list
// with spaces between.
func setFlag(flags *pflag.FlagSet, f *pflag.Flag, value string) error {
	if f.Value.Type() != "stringArray" {
		return flags.Set(f.Name, value)
	}
	for _, v := range strings.Fields(value) {
		if err := flags.Set(f.Name, v); err != nil {
			return err
		}
	}
	return nil
}

// badFlag makes a mistyped flag's error name the nearest flag there is.
func badFlag(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	if errors.As(err, &unknown) {
		text = fmt.Sprintf("%s: no flag --%s", c.CommandPath(), unknown.GetSpecifiedName())
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := loadmodel.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			text += "; did you mean --" + near + "?"
		}
	}
	return usage(&hinted{errors.New(text), c.CommandPath() + " --help"})
}

// badVerb makes a mistyped verb's error name the nearest verb there is.
func badVerb(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	text := fmt.Sprintf("no command %q", args[0])
	if near := loadmodel.Nearest(args[0], names); near != "" {
		text += fmt.Sprintf("; did you mean %s %s?", root.Name(), near)
	}
	return usage(&hinted{errors.New(text), root.Name() + " --help"})
}

// parseSelection reads the words of a selection; a mistyped one's error names
// the nearest that there is.
func parseSelection(words []string) (store.Selection, error) {
	s, err := store.ParseSelection(words)
	var unknown *store.UnknownSelector
	if errors.As(err, &unknown) {
		kind, value, valued := strings.Cut(unknown.Word, ":")
		near := loadmodel.Nearest(kind, store.Selectors(valued))
		if near != "" && valued {
			near += ":" + value
		}
		if near != "" {
			err = fmt.Errorf("selection %q: did you mean %s?", unknown.Word, near)
		}
	}
	return s, usage(err)
}
