package main

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// request sends one and puts the answer's body into stdout. A header Host is the
// name by which the server is asked for.
func request(ts *testscript.TestScript, method, url, body string, headers []string) (status int, text string) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	ts.Check(err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	ts.Check(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	ts.Check(err)
	return resp.StatusCode, string(b)
}

// get STATUS URL [METHOD] ['NAME: VALUE']…: asks for a URL and wants that status.
func get(ts *testscript.TestScript, _ bool, args []string) {
	method, headers := http.MethodGet, args[2:]
	if len(headers) > 0 && !strings.Contains(headers[0], ":") {
		method, headers = headers[0], headers[1:]
	}
	status, text := request(ts, method, args[1], "", headers)
	if fmt.Sprint(status) != args[0] {
		ts.Fatalf("status %d, want %s: %s", status, args[0], text)
	}
	fmt.Fprint(ts.Stdout(), text)
}

// post URL JSON: sends it, and wants it to go well.
func post(ts *testscript.TestScript, _ bool, args []string) {
	status, text := request(ts, http.MethodPost, args[0], args[1], []string{"Content-Type: application/json"})
	if status != http.StatusOK {
		ts.Fatalf("status %d: %s", status, text)
	}
}

// scraped PATTERN URL: asks for metrics until they match.
func scraped(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile(args[0])
	var text string
	for range 400 {
		if _, text = request(ts, http.MethodGet, args[1], "", nil); pattern.MatchString(text) {
			fmt.Fprint(ts.Stdout(), text)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("the metrics do not match %s:\n%s", args[0], text)
}
