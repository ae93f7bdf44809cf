package loadmodel

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// line is a line of a file, without its end, and its number from 1.
type line struct {
	number int
	text   []byte
}

// longestLine is the longest line of a trace that is taken for one.
const longestLine = 16 << 20

// lines reads the file's lines that are not blank. Each is good until the next.
func (t *Trace) lines() iter.Seq2[line, error] { return t.linesOf(t.Path) }

func (t *Trace) linesOf(path string) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		f, err := t.open(path)
		if err != nil {
			yield(line{}, err)
			return
		}
		defer f.Close()
		scan := newScanner(f)
		number := 0
		for scan.Scan() {
			text := scan.Bytes()
			if number++; number == 1 {
				text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
			}
			if text = bytes.TrimSpace(text); len(text) > 0 && !yield(line{number, text}, nil) {
				return
			}
		}
		if err := scan.Err(); err != nil {
			yield(line{}, t.fault(number+1, scanProblem(err)))
		}
	}
}

func (t *Trace) open(path string) (io.ReadCloser, error) {
	if t.source != nil {
		return io.NopCloser(t.source()), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, t.problem("%s", reason(err))
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, t.problem("is a directory; name the file in it")
	}
	return f, nil
}

func newScanner(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), longestLine)
	return s
}

func scanProblem(err error) string {
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Sprintf("a line is longer than %d MiB; is this a trace?", longestLine>>20)
	}
	return reason(err)
}
