package loadmodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// longestYAML is the largest document that is read as YAML, whose parser's time
// grows faster than the document.
const longestYAML = 1 << 20

// isYAML says whether the document is YAML and not JSON: by its name, else by
// its beginning. JSON under a name of YAML is read as JSON, which it also is.
func (d *document) isYAML() bool {
	start := bytes.TrimSpace(d.data)
	braced := len(start) > 0 && (start[0] == '{' || start[0] == '[')
	switch strings.ToLower(filepath.Ext(d.name)) {
	case ".yaml", ".yml":
		return !braced || !json.Valid(start)
	case ".json":
		return false
	}
	return !braced && !json.Valid(start)
}

// parseYAML reads the whole document as one value.
func (d *document) parseYAML() (n node, err error) {
	if len(d.data) > longestYAML {
		return n, &Error{File: d.name, Problem: fmt.Sprintf("is longer than %d MiB, which is too much for YAML; write it as JSON", longestYAML>>20)}
	}
	if at := d.deepYAML(); at >= 0 {
		return n, d.tooDeep(at)
	}
	y := &yamlReader{d: d, anchors: map[string]anchored{}}
	for at, c := range d.data {
		if c == '\n' {
			y.lines = append(y.lines, at+1)
		}
	}
	file, err := parser.ParseBytes(d.data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return n, y.syntax(err)
	}
	defer func() {
		switch stop := recover().(type) {
		case nil:
		case *Error:
			err = stop
		default:
			panic(stop)
		}
	}()
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.DirectiveType && doc.Body.Type() != ast.CommentGroupType {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return n, &Error{File: d.name, Problem: "is empty; a load model begins with load_model:"}
	case 1:
		return y.node(bodies[0], 0), nil
	}
	return n, d.fault(y.node(bodies[1], 0).at, "a second document begins here; a load model is one: take it out")
}

var manyEntries = regexp.MustCompile(`(?:[-?][ \t]+){100}`)

// deepYAML is where a document is nested too deep for the parser, or -1. It
// looks at bytes alone: what it finds is no load model, whatever it is.
func (d *document) deepYAML() int {
	if found := manyEntries.FindIndex(d.data); found != nil {
		return found[0]
	}
	open := 0
	for at, c := range d.data {
		switch c {
		case '[', '{':
			if open++; open > 10*deepest {
				return at
			}
		case ']', '}':
			open = max(open-1, 0)
		}
	}
	return -1
}

// yamlReader turns YAML's nodes into those that JSON gives, so that all behind
// it is the same. Faults end it by a panic with an *Error.
type yamlReader struct {
	d       *document
	lines   []int // offsets of the lines from the second on
	anchors map[string]anchored
	nodes   int // so far, with what aliases repeat
}

type anchored struct {
	node
	nodes int
}

// olderNumber matches what the parser reads as YAML 1.1 does: 030 as 24.
var olderNumber = regexp.MustCompile(`^[-+]?0[0-9]|_`)

func (y *yamlReader) fail(t *token.Token, format string, a ...any) {
	panic(y.d.fault(y.at(t), format, a...))
}

// at is the offset of a token, which says its line and column in letters.
func (y *yamlReader) at(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	at := 0
	if i := t.Position.Line - 2; i >= 0 && len(y.lines) > 0 {
		at = y.lines[min(i, len(y.lines)-1)]
	}
	for range t.Position.Column - 1 {
		_, size := utf8.DecodeRune(y.d.data[at:])
		at += size
	}
	return at
}

// syntax is the error of a document that is not YAML.
func (y *yamlReader) syntax(err error) error {
	var s *yaml.SyntaxError
	if !errors.As(err, &s) {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return &Error{File: y.d.name, Problem: line}
	}
	at, advice := y.at(s.Token), ""
	switch {
	case at < len(y.d.data) && y.d.data[at] == '\t':
		return y.d.fault(at, "not YAML here: a tab; YAML indents with spaces only")
	case strings.Contains(s.Message, "mapping value is not allowed"):
		advice = "; is the line before it, or its indentation, wrong? Text with a colon needs quotes"
	}
	return y.d.fault(at, "not YAML here: %s%s", strings.ReplaceAll(s.Message, "\n", " "), advice)
}

// most is how many nodes a document may have with all that its aliases repeat.
const most = 4 * longestYAML

func (y *yamlReader) node(n ast.Node, depth int) node {
	if y.nodes++; depth > deepest || y.nodes > most {
		panic(y.d.tooDeep(y.at(n.GetToken())))
	}
	out := node{at: y.at(n.GetToken())}
	switch n := n.(type) {
	case *ast.MappingNode:
		y.mapping(&out, n.Values, depth)
		if n.IsFlowStyle || len(out.members) == 0 {
			out.at = y.at(n.Start)
		}
	case *ast.MappingValueNode:
		y.mapping(&out, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		out.kind = "array"
		for _, v := range n.Values {
			out.items = append(out.items, y.node(v, depth+1))
		}
	case *ast.StringNode:
		y.text(&out, n)
	case *ast.LiteralNode:
		out.kind, out.value = "string", n.Value.Value
	case *ast.IntegerNode:
		if said := n.GetToken().Value; olderNumber.MatchString(said) {
			y.fail(n.GetToken(), "%s is one number to YAML 1.1 and another, or a text, to YAML 1.2; write it without leading zeros and underscores", said)
		}
		out.kind, out.value = "number", json.Number(fmt.Sprint(n.Value))
	case *ast.FloatNode:
		out.kind, out.value = "number", json.Number(strconv.FormatFloat(n.Value, 'g', -1, 64))
	case *ast.BoolNode:
		out.kind, out.value = "boolean", n.Value
	case *ast.NullNode:
		out.kind = "null"
	case *ast.AnchorNode:
		before := y.nodes
		out = y.node(n.Value, depth+1)
		y.anchors[n.Name.GetToken().Value] = anchored{out, y.nodes - before}
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		known, ok := y.anchors[name]
		if !ok {
			y.fail(n.GetToken(), "no anchor %q stands before this alias of it", name)
		}
		if y.nodes += known.nodes; y.nodes > most {
			y.fail(n.GetToken(), "aliases repeat so much that the document grows beyond all use; take some out")
		}
		out = known.node
	case *ast.InfinityNode, *ast.NanNode:
		y.fail(n.GetToken(), "%s is no number that a load model can have; want a finite one", n.GetToken().Value)
	default:
		y.fail(n.GetToken(), "%q: a load model needs nothing of YAML but maps, lists, texts, numbers, anchors and aliases; take it out", n.GetToken().Value)
	}
	return out
}

// plainNumber matches what JSON calls a number and YAML 1.2 too, of which the parser
// takes some for text.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func (y *yamlReader) text(out *node, n *ast.StringNode) {
	if n.Token.Type == token.StringType && plainNumber.MatchString(n.Value) {
		out.kind, out.value = "number", json.Number(n.Value)
		return
	}
	out.kind, out.value = "string", n.Value
}

// mapping reads the fields of a map. Those of a merge key, <<: *base, come
// behind its own, and give way to them.
func (y *yamlReader) mapping(out *node, values []*ast.MappingValueNode, depth int) {
	out.kind = "object"
	seen := map[string]bool{}
	var merged []node
	for _, v := range values {
		key := v.Key.GetToken()
		if v.Key.IsMergeKey() {
			merged = append(merged, y.bases(v, depth)...)
			continue
		}
		switch v.Key.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		default:
			y.fail(key, "a field's name is no plain text here; want one")
		}
		name := key.Value
		if seen[name] {
			y.fail(key, "field %q stands twice in one object; keep one", name)
		}
		seen[name] = true
		if len(out.members) == 0 {
			out.at = y.at(key)
		}
		m := member{name: name, at: y.at(key), value: node{at: y.at(key), kind: "null"}}
		if v.Value != nil {
			m.value = y.node(v.Value, depth+1)
		}
		out.members = append(out.members, m)
	}
	for _, base := range merged {
		for _, m := range base.members {
			if !seen[m.name] {
				seen[m.name] = true
				out.members = append(out.members, m)
			}
		}
	}
}

// bases are the maps that a merge key names.
func (y *yamlReader) bases(v *ast.MappingValueNode, depth int) []node {
	n := y.node(v.Value, depth+1)
	all := []node{n}
	if n.kind == "array" {
		all = n.items
	}
	if slices.ContainsFunc(all, func(n node) bool { return n.kind != "object" }) {
		y.fail(v.Key.GetToken(), "<< takes an alias of a map, as <<: *base, or a list of such")
	}
	return all
}
