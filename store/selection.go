package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Selection says which calls are meant. The zero Selection is "last".
type Selection struct {
	terms []term
}

// term is one condition of a selection.
type term struct{ kind, value string }

// selectors are the words of a selection and what they mean.
var selectors = []struct{ kind, example, meaning string }{
	{"last", "last", "the newest run; or, when newer calls belong to none, the hour up to the newest"},
	{"all", "all", "everything in the database"},
	{"run", "run:7f3a", "a run, by the beginning of its id"},
	{"label", "label:NAME", "calls with a label; label:KEY=VALUE for one of its values"},
	{"since", "since:1h", "calls that arrived in that time, up to now"},
	{"scenario", "scenario:NAME", "a scenario's calls"},
	{"model", "model:NAME", "calls that asked for, or were served by, a model"},
	{"api", "api:messages", "calls in a dialect"},
	{"session", "session:ID", "a conversation's calls"},
	{"outcome", "outcome:ok", "calls that ended so"},
	{"upstream", "upstream:NAME", "calls to an endpoint"},
	{"client", "client:NAME", "calls of a program"},
	{"key", "key:FINGERPRINT", "calls with a key"},
}

// SelectionHelp describes the words of a selection, a line each.
func SelectionHelp() string {
	var b strings.Builder
	for _, s := range selectors {
		fmt.Fprintf(&b, "  %-18s %s\n", s.example, s.meaning)
	}
	return b.String()
}

// ParseSelection reads the words of a selection, which narrow one another. No
// words are "last".
func ParseSelection(words []string) (Selection, error) {
	var s Selection
	for _, word := range words {
		kind, value, hasValue := strings.Cut(word, ":")
		known := false
		for _, k := range selectors {
			known = known || k.kind == kind
		}
		plain := kind == "last" || kind == "all"
		switch {
		case !known:
			return s, &UnknownSelector{Word: word}
		case plain && hasValue, !plain && value == "":
			return s, fmt.Errorf("selection %q: want it in the form %s", word, exampleOf(kind))
		}
		if kind == "since" {
			if d, err := time.ParseDuration(value); err != nil || d <= 0 {
				return s, fmt.Errorf("selection %q: %q is not a time such as 30s, 10m or 1h", word, value)
			}
		}
		s.terms = append(s.terms, term{kind, value})
	}
	return s, nil
}

// UnknownSelector is a word of a selection that begins with none that there is.
type UnknownSelector struct{ Word string }

func (e *UnknownSelector) Error() string {
	return fmt.Sprintf("selection %q: want %s", e.Word, examples())
}

// Selectors are the words of a selection that have a value, up to their colon,
// or those that have none.
func Selectors(valued bool) []string {
	var kinds []string
	for _, s := range selectors {
		if strings.Contains(s.example, ":") == valued {
			kinds = append(kinds, s.kind)
		}
	}
	return kinds
}

func exampleOf(kind string) string {
	for _, s := range selectors {
		if s.kind == kind {
			return s.example
		}
	}
	return ""
}

func examples() string {
	var all []string
	for _, s := range selectors {
		all = append(all, s.example)
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// String is the selection as it was written.
func (s Selection) String() string {
	if len(s.terms) == 0 {
		return "last"
	}
	var words []string
	for _, t := range s.terms {
		word := t.kind
		if t.value != "" {
			word += ":" + t.value
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// filter is a selection as SQL: a condition on spans s, and its values.
type filter struct {
	where []string
	args  []any
}

func (f *filter) and(condition string, args ...any) {
	f.where = append(f.where, condition)
	f.args = append(f.args, args...)
}

func (f *filter) sql() string {
	if len(f.where) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(f.where, " AND ")
}

// nameID is a condition for a column of names.
const nameID = " = (SELECT id FROM names WHERE name = ?)"

// filter resolves the selection against what is in the database.
func (db *DB) filter(ctx context.Context, s Selection) (filter, error) {
	var f filter
	terms := s.terms
	if !s.hasScope() {
		terms = append([]term{{"last", ""}}, terms...)
	}
	for _, t := range terms {
		switch t.kind {
		case "all":
		case "last":
			if err := db.last(ctx, &f); err != nil {
				return f, err
			}
		case "run":
			runs, err := db.runIDs(ctx, t.value)
			if err != nil {
				return f, err
			}
			f.and("s.run"+nameID, runs)
		case "label":
			key, value, both := strings.Cut(t.value, "=")
			if both {
				f.and("EXISTS (SELECT 1 FROM json_each(s.labels) WHERE key = ? AND value = ?)", key, value)
			} else {
				f.and("EXISTS (SELECT 1 FROM json_each(s.labels) WHERE ? IN (key, value))", key)
			}
		case "since":
			d, err := time.ParseDuration(t.value)
			if err != nil {
				return f, err
			}
			f.and("s.start_ns >= ?", time.Now().Add(-d).UnixNano())
		case "model":
			f.and("(s.model"+nameID+" OR s.served_model"+nameID+")", t.value, t.value)
		case "session":
			f.and("s.session = ?", t.value)
		case "key":
			f.and("s.key_fingerprint"+nameID, t.value)
		default: // scenario, api, outcome, upstream, client: columns of names
			f.and("s."+t.kind+nameID, t.value)
		}
	}
	return f, nil
}

// hasScope says whether a selection says of itself in which time or run to
// look: one that does not means the last.
func (s Selection) hasScope() bool {
	for _, t := range s.terms {
		switch t.kind {
		case "last", "all", "run", "label", "since", "session":
			return true
		}
	}
	return false
}

// last is the newest call's run, or the hour up to it when it has none.
func (db *DB) last(ctx context.Context, f *filter) error {
	var start int64
	var run *int64
	rows, err := db.read.QueryContext(ctx, "SELECT start_ns, run FROM spans ORDER BY start_ns DESC LIMIT 1")
	if err != nil {
		return fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	defer rows.Close()
	if !rows.Next() {
		f.and("0")
		return rows.Err()
	}
	if err := rows.Scan(&start, &run); err != nil {
		return err
	}
	if run != nil {
		f.and("s.run = ?", *run)
	} else {
		f.and("s.start_ns >= ?", start-int64(time.Hour))
	}
	return nil
}

// runIDs finds the one run whose id begins with prefix, among the runs and the
// runs that only spans name.
func (db *DB) runIDs(ctx context.Context, prefix string) (string, error) {
	rows, err := db.read.QueryContext(ctx, `SELECT id FROM runs WHERE substr(id, 1, length(?1)) = ?1
		UNION SELECT n.name FROM names n WHERE substr(n.name, 1, length(?1)) = ?1 AND EXISTS (SELECT 1 FROM spans s WHERE s.run = n.id)`, prefix)
	if err != nil {
		return "", fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return "", err
		}
		if id == prefix {
			return id, nil
		}
		ids = append(ids, id)
	}
	switch {
	case rows.Err() != nil:
		return "", rows.Err()
	case len(ids) == 0:
		return "", fmt.Errorf("run:%s: no run's id begins like that; weir report last shows the newest", prefix)
	case len(ids) > 1:
		return "", fmt.Errorf("run:%s: several runs begin like that: %s", prefix, strings.Join(ids, ", "))
	}
	return ids[0], nil
}

// errNoCall says that an id names nothing.
var errNoCall = errors.New("no call has an id that begins like that; weir calls lists them")

// hexRange gives the bounds of the ids that begin with some hex digits.
func hexRange(prefix string) (from, to []byte, err error) {
	digits := strings.ToLower(prefix)
	if len(digits) > 16 || digits == "" {
		return nil, nil, errNoCall
	}
	if from, err = hex.DecodeString(digits + strings.Repeat("0", 16-len(digits))); err != nil {
		return nil, nil, errNoCall
	}
	to, err = hex.DecodeString(digits + strings.Repeat("f", 16-len(digits)))
	return from, to, err
}
