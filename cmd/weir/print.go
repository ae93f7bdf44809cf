package main

import (
	"bytes"
	"io"

	"weir/store/report"
)

// print writes text for people to w, in its style. The error is of a disk that
// is full, say: what was not written whole must not end well.
func (a *app) print(w io.Writer, text func(w io.Writer, s report.Style)) error {
	var b bytes.Buffer
	text(&b, a.style(w))
	_, err := w.Write(b.Bytes())
	return err
}
