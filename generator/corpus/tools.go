package corpus

import (
	"encoding/json"
	"strconv"
	"strings"
)

// toolSketch is a tool as it is offered: its name, what it does, and its
// parameters as "name:type what it is", those that must be given with a "!".
type toolSketch struct {
	name, description string
	parameters        []string
}

var toolSketches = []toolSketch{
	{"read_file", "Read a file of the workspace. Long files are cut; ask for a range of lines to see the rest.", []string{"path:string! Path below the workspace's root", "from_line:integer First line, from 1", "to_line:integer Last line"}},
	{"search_text", "Search all files of the workspace for a regular expression and list the matching lines with their places.", []string{"pattern:string! Regular expression", "glob:string Only files that match", "max_results:integer Most lines to give, 100 unless said"}},
	{"list_directory", "List what a directory holds, with sizes and times of change.", []string{"path:string! Directory", "recursive:boolean Go into directories below"}},
	{"apply_patch", "Change a file: replace one passage, which must stand in it exactly once, by another.", []string{"path:string! File to change", "old_text:string! Passage to replace", "new_text:string! What to put in its place"}},
	{"run_command", "Run a shell command in the workspace and give its output and exit code. Commands that take longer than the timeout are ended.", []string{"command:string! Command line", "timeout_seconds:integer When to end it", "background:boolean Do not wait for it"}},
	{"run_tests", "Run the tests of a package and report those that fail.", []string{"package:string! Package or folder", "filter:string Only tests whose name matches", "race:boolean With the race detector"}},
	{"query_database", "Run a read-only SQL query and give its rows as JSON.", []string{"sql:string! Query", "limit:integer Most rows"}},
	{"fetch_logs", "Fetch log lines of a service between two instants, newest first.", []string{"service:string! Name of the service", "since:string! Instant in RFC 3339", "until:string Instant in RFC 3339", "level:string Least level"}},
	{"http_request", "Send an HTTP request to an internal service and give status, headers and body.", []string{"method:string! GET or POST", "url:string! Address", "body:string Body to send"}},
	{"search_tickets", "Search the tracker for tickets by words, state and owner.", []string{"query:string! Words to look for", "state:string open or closed", "owner:string Whose tickets"}},
	{"create_ticket", "Open a ticket in the tracker and give its number.", []string{"title:string! One line", "description:string! What is wrong and how to see it", "labels:array Labels"}},
	{"get_metrics", "Read a time series of a metric, averaged over steps.", []string{"metric:string! Name", "window_minutes:integer! How far back", "step_seconds:integer Length of a step"}},
	{"look_up_customer", "Find a customer by number, name or address, with plan and open invoices.", []string{"query:string! Number, name or address", "include_invoices:boolean With invoices"}},
	{"search_web", "Search the web and give titles, addresses and short extracts of the best pages.", []string{"query:string! Words to look for", "max_results:integer Most pages"}},
	{"send_message", "Send a message to a channel or a person.", []string{"recipient:string! Channel or person", "text:string! Message", "urgent:boolean Notify at once"}},
	{"plan_steps", "Write down or renew the list of steps of the task, with the state of each.", []string{"steps:array! Steps in their order", "current:integer Which is under way"}},
}

// tools writes definitions: as many as wanted, or for an agent, when 0 are, as
// fit in a quarter of n tokens, or three in a half. Order and wording differ by
// author, so that no two prompts begin alike in their tools.
func (a *Author) tools(kind Kind, n, wanted int) []Tool {
	if wanted == 0 && kind != Agent {
		return nil
	}
	order := a.rng.Perm(len(toolSketches))
	var defs []Tool
	for spent := 0; ; {
		i := len(defs)
		if wanted > 0 && i == wanted {
			return defs
		}
		sketch := toolSketches[order[i%len(order)]]
		if i >= len(order) { // more than there are: variants of them
			sketch.name += "_" + strconv.Itoa(i/len(order)+1)
		}
		if i == 0 {
			sketch.description = "[" + strings.TrimRight(a.opening(), ": ：") + "] " + sketch.description
		}
		def := sketch.tool()
		if spent += def.Count(a.tok); wanted == 0 && (spent > n/4 && i >= 3 || spent > n/2 || i == len(order)) {
			return defs
		}
		defs = append(defs, def)
	}
}

func (s toolSketch) tool() Tool {
	b := []byte(`{"type":"object","properties":{`)
	var required []string
	for i, p := range s.parameters {
		name, rest, _ := strings.Cut(p, ":")
		kind, description, _ := strings.Cut(rest, " ")
		if bare, must := strings.CutSuffix(kind, "!"); must {
			kind = bare
			required = append(required, name)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `"`+name+`":{"type":"`+kind+`"`...)
		if kind == "array" {
			b = append(b, `,"items":{"type":"string"}`...)
		}
		b = append(b, `,"description":"`+description+`"}`...)
	}
	b = append(b, `},"required":["`+strings.Join(required, `","`)+`"]}`...)
	return Tool{Name: s.name, Description: s.description, Parameters: b}
}

// ToolCall writes a call of one of the tools, of which there is at least one;
// its arguments fit the schema's properties.
func (a *Author) ToolCall(tools []Tool) Call {
	tool := &tools[a.rng.IntN(len(tools))]
	a.ids++
	c := Call{ID: "call_" + string(appendReference(nil, a.rng)) + strconv.Itoa(a.ids), Name: tool.Name}
	var schema struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	b := []byte{'{'}
	if json.Unmarshal(tool.Parameters, &schema) == nil {
		for i, name := range schema.Required {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `"`+name+`":`...)
			b = a.argument(b, name, schema.Properties[name].Type)
		}
	}
	c.Arguments = string(append(b, '}'))
	return c
}

// argument writes a value of a type that suits a parameter's name.
func (a *Author) argument(dst []byte, name, kind string) []byte {
	switch kind {
	case "integer", "number":
		return strconv.AppendInt(dst, a.rng.Int64N(240)+1, 10)
	case "boolean":
		return strconv.AppendBool(dst, a.rng.IntN(2) == 0)
	case "array":
		dst = append(dst, `["`...)
		dst = appendIdentifier(dst, a.rng)
		dst = append(dst, `","`...)
		dst = appendIdentifier(dst, a.rng)
		return append(dst, `"]`...)
	}
	dst = append(dst, '"')
	switch name {
	case "path", "package":
		dst = a.path(dst)
	case "command":
		dst = append(dst, "go test ./"...)
		dst = a.path(dst)
		dst = append(dst, " -run "...)
		dst = appendCamel(dst, a.rng, true)
	case "sql":
		dst = append(dst, "select id, state from "...)
		dst = appendIdentifier(dst, a.rng)
		dst = append(dst, " where "...)
		dst = appendIdentifier(dst, a.rng)
		dst = append(dst, " > "...)
		dst = strconv.AppendInt(dst, a.rng.Int64N(5000), 10)
	case "since", "until":
		dst = a.instant(dst)
	case "url":
		dst = append(dst, "http://"...)
		dst = append(dst, pick(a.rng, idParts)...)
		dst = append(dst, ".internal/v1/"...)
		dst = appendIdentifier(dst, a.rng)
	case "method":
		dst = append(dst, "GET"...)
	default:
		dst = appendIdentifier(dst, a.rng)
		dst = append(dst, ' ')
		dst = append(dst, englishWords['n'][a.rng.IntN(len(englishWords['n']))]...)
	}
	return append(dst, '"')
}

func (a *Author) path(dst []byte) []byte {
	dst = append(dst, pick(a.rng, idParts)...)
	dst = append(dst, '/')
	dst = appendIdentifier(dst, a.rng)
	return append(dst, ".go"...)
}

// instant writes a time in RFC 3339.
func (a *Author) instant(dst []byte) []byte {
	two := func(sep byte, n int) {
		dst = append(dst, sep, byte('0'+n/10), byte('0'+n%10))
	}
	dst = append(dst, "2026"...)
	two('-', 1+a.rng.IntN(12))
	two('-', 1+a.rng.IntN(28))
	two('T', a.rng.IntN(24))
	two(':', a.rng.IntN(60))
	two(':', a.rng.IntN(60))
	dst = append(dst, '.')
	dst = strconv.AppendInt(dst, 100+a.rng.Int64N(900), 10)
	return append(dst, 'Z')
}
