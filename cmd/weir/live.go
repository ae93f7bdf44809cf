package main

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/mattn/go-runewidth"
)

// screenWidth is what text takes on a screen: characters of ambiguous width (– …)
// are one column whatever the locale, as terminals draw them.
var screenWidth = &runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}

// live is a few lines at the end of a terminal that are drawn again and again.
// The cursor stays visible below them, no mode is changed: whatever ends the
// process leaves the terminal as it was.
type live struct {
	mu      sync.Mutex
	w       io.Writer
	columns int
	drawn   int // lines on the screen that belong to us
}

// draw replaces the lines. Lines are cut at the screen's width: one that
// wrapped would be two, and the next drawing would climb too little.
func (l *live) draw(lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	l.rewind(&b)
	for _, line := range lines {
		b.WriteString(screenWidth.Truncate(line, l.columns-1, "…"))
		b.WriteByte('\n')
	}
	l.drawn = len(lines)
	fmt.Fprint(l.w, b.String())
}

// clear takes the lines away.
func (l *live) clear() { l.draw(nil) }

// rewind climbs to the first line drawn and clears from there.
func (l *live) rewind(b *strings.Builder) {
	if l.drawn > 0 {
		fmt.Fprintf(b, "\x1b[%dA\r\x1b[J", l.drawn)
	}
	l.drawn = 0
}
