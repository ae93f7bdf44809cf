package client

import (
	"os/exec"
	"strings"
	"testing"
)

// A shell takes every path in the lines to paste as one word.
func TestPathsInLinesToPasteAreOneWord(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell here")
	}
	for _, path := range []string{"/tmp/a b 中/ca.pem", "/tmp/it's/ca.pem", "/tmp/$HOME`id`/ca.pem", "/plain/ca-1.pem", ""} {
		out, err := exec.Command("sh", "-c", "printf %s "+Quoted(path)).Output()
		if err != nil || string(out) != path {
			t.Errorf("%s became %s, %v", path, out, err)
		}
		for _, l := range append(Trust("http://127.0.0.1:1", path, path), Install(path)...) {
			if l.Client != "Windows" && !strings.Contains(l.Text[0], Quoted(path)) {
				t.Errorf("%s: %s", l.Client, l.Text[0])
			}
		}
	}
	if got := Quoted("/plain/ca-1.pem"); got != "/plain/ca-1.pem" {
		t.Errorf("a plain path is quoted: %s", got)
	}
}
