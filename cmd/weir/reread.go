package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"weir/generator/loadmodel"
)

// rereadEvery is how often a load model's file is looked at. A change is taken
// when the file has stood still from one look to the next: an editor may not
// have written it to its end.
const rereadEvery = time.Second

// stamp tells two states of a file apart; nil where there is none.
type stamp struct{ info os.FileInfo }

func stampOf(file string) stamp {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}
	}
	return stamp{info}
}

func (s stamp) same(other stamp) bool {
	if s.info == nil || other.info == nil {
		return s.info == other.info
	}
	return os.SameFile(s.info, other.info) && s.info.Size() == other.info.Size() && s.info.ModTime().Equal(other.info.ModTime())
}

// keepReading reads a proxy's load model again whenever its file has changed
// since read, and at each of signals, which are SIGHUPs, until ctx ends. A SIGHUP that tells of the end
// of weir's terminal calls hungUp instead.
func (a *app) keepReading(ctx context.Context, b *rulebook, read stamp, signals <-chan os.Signal, hungUp func()) {
	attended := fromTerminal()
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	seen := read
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			if attended && !fromTerminal() {
				hungUp()
				return
			}
			read = stampOf(b.file)
			a.reread(b)
		case <-tick.C:
			now := stampOf(b.file)
			if !now.same(read) && now.same(seen) {
				read = now
				a.reread(b)
			}
			seen = now
		}
	}
}

// reread reads the load model again and says what came of it. A broken file
// changes nothing.
func (a *app) reread(b *rulebook) {
	m, err := loadmodel.Read(b.file)
	if err != nil {
		a.warn([]string{err.Error() + "; what was read before it holds on"})
		return
	}
	gaveWay, err := b.replace(m)
	if err != nil {
		a.warn([]string{fmt.Sprintf("load model %s: %v", b.file, err)})
		return
	}
	limits := "nothing limits the calls"
	if lines := ruleLines(b.shaper.Rules()); len(lines) > 0 {
		limits = strings.Join(lines, "; ")
	}
	fmt.Fprintf(a.err, "load model %s was read again: %s\n", b.file, limits)
	tellImpairments(a.err, b.impair)
	for _, lane := range gaveWay {
		fmt.Fprintf(a.err, "! what weir limit said of %s gave way to the file\n", lane)
	}
}
