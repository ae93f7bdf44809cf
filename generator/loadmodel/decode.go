package loadmodel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// longest is the largest file that is taken for a load model.
const longest = 64 << 20

// Read reads a load model's file. A file that is too long is not read at all.
func Read(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{File: path, Problem: reason(err)}
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, &Error{File: path, Problem: reason(err)}
	case info.IsDir():
		return nil, &Error{File: path, Problem: "is a directory; name the file in it"}
	case info.Size() > longest:
		return nil, tooLong(path)
	}
	data, err := io.ReadAll(io.LimitReader(f, longest+1))
	if err != nil {
		return nil, &Error{File: path, Problem: reason(err)}
	}
	return Decode(path, data)
}

func tooLong(name string) error {
	return &Error{File: name, Problem: fmt.Sprintf("is longer than %d MiB, which no load model is; is it a trace or a dataset?", longest>>20)}
}

// reason is what the system says, without the path around it, and what to do.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file; check the path"
	case errors.Is(err, fs.ErrPermission):
		return "may not be read: permission denied; change its mode or owner"
	}
	return err.Error()
}

// Decode reads a load model, in JSON or YAML: as its name ends, or else as it
// begins. name is also for its errors, which are *Error: the first fault that
// reading comes upon, with its place and what to do.
func Decode(name string, data []byte) (*Model, error) {
	if len(data) > longest {
		return nil, tooLong(name)
	}
	d := &document{name, bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))}
	if len(bytes.TrimSpace(d.data)) == 0 {
		return nil, &Error{File: name, Problem: `is empty; a load model begins with {"load_model": {`}
	}
	if err := d.text(); err != nil {
		return nil, err
	}
	parse := d.parse
	if d.isYAML() {
		parse = d.parseYAML
	}
	root, err := parse()
	if err != nil {
		return nil, err
	}
	r := &reader{d: d}
	m := r.root(root)
	if r.err != nil {
		return nil, r.err
	}
	m.Source = bytes.Clone(data)
	return m, nil
}

// text fails unless the document is UTF-8.
func (d *document) text() error {
	if utf8.Valid(d.data) {
		return nil
	}
	if bytes.HasPrefix(d.data, []byte{0xff, 0xfe}) || bytes.HasPrefix(d.data, []byte{0xfe, 0xff}) {
		return &Error{File: d.name, Problem: "is UTF-16; save it as UTF-8"}
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(d.data[at:])
		if r == utf8.RuneError && size <= 1 {
			return d.fault(at, "not UTF-8 here; save the file as UTF-8")
		}
		at += size
	}
}

// reader turns nodes into a model. After the first fault it does nothing.
type reader struct {
	d   *document
	err *Error
}

// fail keeps the first fault. Numbers are told as people write them.
func (r *reader) fail(at int, format string, a ...any) {
	if r.err != nil {
		return
	}
	for i := range a {
		if f, ok := a[i].(float64); ok {
			a[i] = number(f)
		}
	}
	r.err = r.d.fault(at, format, a...)
}

// number prints a number without an exponent unless it is beyond all use, and
// without the noise that binary fractions gather in sums.
func number(f float64) string {
	if math.Abs(f) >= 1e15 {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strconv.FormatFloat(math.Round(f*1e6)/1e6, 'f', -1, 64)
}

// setters are what an object's fields do, by their names.
type setters map[string]func(node)

// object reads an object whose fields are known.
func (r *reader) object(n node, what string, s setters) map[string]node {
	if r.err != nil {
		return nil
	}
	if n.kind != "object" {
		r.fail(n.at, "%s is %s; want an object in braces", what, article(n.kind))
		return nil
	}
	given := map[string]node{}
	for _, m := range n.members {
		set, known := s[m.name]
		switch {
		case known:
			given[m.name] = m.value
			set(m.value)
		default:
			names := make([]string, 0, len(s))
			for name := range s {
				names = append(names, name)
			}
			slices.Sort(names)
			if near := Nearest(m.name, names); near != "" {
				r.fail(m.at, "%s: unknown field %q: did you mean %q?", what, m.name, near)
			} else {
				r.fail(m.at, "%s: unknown field %q; the fields are %s", what, m.name, strings.Join(names, ", "))
			}
		}
		if r.err != nil {
			return given
		}
	}
	return given
}

// need fails unless the object gives the fields.
func (r *reader) need(n node, what string, given map[string]node, names ...string) {
	for _, name := range names {
		if _, ok := given[name]; !ok {
			r.fail(n.at, "%s: field %q is missing; add it", what, name)
		}
	}
}
