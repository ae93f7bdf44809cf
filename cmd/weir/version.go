package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release and revision are set by the linker for a release:
// -ldflags "-X main.release=v1.2.3 -X main.revision=abc".
var release, revision string

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print weir's version and the revision it was built from",
		Example: "  weir version",
		Args:    wantArgs(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintln(a.out, versionText())
			return nil
		},
	}
}

// versionText is one line: release, revision, Go, platform.
func versionText() string {
	rel, rev := buildVersion()
	return fmt.Sprintf("weir %s (%s) %s %s/%s", rel, rev, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// buildVersion reads what the linker was told, else what the Go tool stamped.
func buildVersion() (rel, rev string) {
	rel, rev = release, revision
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return orElse(rel, "devel"), orElse(rev, "unknown revision")
	}
	if rel == "" && info.Main.Version != "" && info.Main.Version != "(devel)" {
		rel = info.Main.Version
	}
	if rev == "" {
		modified := false
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				rev = s.Value
			case "vcs.modified":
				modified = s.Value == "true"
			}
		}
		if rev != "" && modified {
			rev += ", modified"
		}
	}
	return orElse(rel, "devel"), orElse(rev, "unknown revision")
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
