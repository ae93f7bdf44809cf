package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed is the import table: from package to package, and why. An import of
// ours that is not here is a mistake, or a decision to be written down here.
var allowed = map[string]map[string]string{
	"proxy/wire":   {},
	"proxy/client": {"proxy/wire": "a client's session and turn stand in the bodies it sends"},
	"proxy": {
		"proxy/wire":          "reads requests and events, and refuses in the caller's dialect",
		"proxy/client":        "names who is calling",
		"shaper":              "asks when a call may go",
		"generator/loadmodel": "the rules that give a call its scenario",
		"store/call":          "fills in the call and ends its span",
	},
	"shaper":     {},
	"store/call": {"proxy/wire": "the meter reads streams, and a call holds what they said"},
	"store": {
		"store/call": "records calls and reads them back",
		"proxy/wire": "keeps the shapes of requests",
	},
	"store/report": {
		"proxy/wire":          "shows of what a request is made",
		"store":               "runs and what was lost",
		"store/call":          "summarises calls",
		"generator/loadmodel": "a scenario's order and what is good enough",
	},
	"store/console": {
		"store":        "live queries",
		"store/report": "the same figures as the report",
		"store/call":   "shows calls",
	},
	"generator/loadmodel": {
		"proxy/wire": "a model names the APIs to speak",
		"shaper":     "a scenario's limit is a lane's",
	},
	"generator/corpus": {},
	"generator/sim": {
		"proxy/wire":          "speaks every dialect with the proxy's own builders",
		"generator/loadmodel": "distributions",
		"generator/corpus":    "counts tokens and writes answers",
	},
	"generator": {
		"proxy/wire":          "builds requests",
		"generator/loadmodel": "the plan",
		"generator/corpus":    "prompts",
		"store/call":          "measures with the proxy's ruler",
	},
	"examples/agents":        {},
	"examples/observability": {},
	"examples/quickstart":    {},
}

type listed struct {
	ImportPath string
	Imports    []string
	CgoFiles   []string
}

func TestImportsGoOneWay(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, "weir/")
		if strings.HasPrefix(name, "cmd/") {
			continue // wiring may import everything; nothing may import it
		}
		seen[name] = true
		edges, known := allowed[name]
		if !known {
			t.Errorf("package %s is not in the import table: add it with its reasons, or put the code where it belongs", name)
			continue
		}
		for _, imported := range p.Imports {
			to, ours := strings.CutPrefix(imported, "weir/")
			if ours && edges[to] == "" {
				t.Errorf("%s imports %s, which the table does not allow", name, to)
			}
			if imported == "github.com/mattn/go-sqlite3" && name != "store" {
				t.Errorf("%s imports SQLite: only store may need cgo", name)
			}
		}
		if len(p.CgoFiles) > 0 {
			t.Errorf("%s has cgo files %v: weir has no C of its own", name, p.CgoFiles)
		}
	}
	for name, edges := range allowed {
		for to := range edges {
			if _, known := allowed[to]; !known {
				t.Errorf("the table lets %s import %s, which it does not list", name, to)
			}
		}
	}
	if !seen["store"] || !seen["proxy"] {
		t.Errorf("the packages listed are %v: the list is wrong, and this test saw nothing", seen)
	}
}

// The table must not have a circle either, whatever packages exist today.
func TestImportTableHasNoCircle(t *testing.T) {
	var walk func(name string, path []string)
	walk = func(name string, path []string) {
		if slices.Contains(path, name) {
			t.Fatalf("circle: %s", strings.Join(append(path, name), " → "))
		}
		for to := range allowed[name] {
			walk(to, append(path[:len(path):len(path)], name))
		}
	}
	for name := range allowed {
		walk(name, nil)
	}
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,CgoFiles", "weir/...")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("go list -json: %v", err)
		}
		packages = append(packages, p)
	}
}
