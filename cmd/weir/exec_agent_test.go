package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// agent is a program that scripts run behind weir. Its arguments are done one
// after the other:
//
//	ask API        one streamed call of messages, chat or gemini, to the variable's base URL;
//	               it says hello, or what stands in PROMPT
//	begin API      as ask, but it is left at its first bytes
//	often N        N streamed calls of messages
//	kill PID-FILE  kills the process whose number the file has
//	models         a request that generates nothing
//	env NAME       prints a variable
//	stdin          copies its input to its output
//	until NAME F   writes each signal into a file until one has that name, and exits with 7
//	die            ends itself by a signal
//	exit N         exits
//
// Named codex it prints its arguments.
func agent() {
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == "codex" {
		fmt.Println(strings.Join(args, "\n"))
		return
	}
	next := func() string {
		if len(args) == 0 {
			fail("an argument is missing")
		}
		word := args[0]
		args = args[1:]
		return word
	}
	for len(args) > 0 {
		switch word := next(); word {
		case "ask":
			api := next()
			fmt.Println(api, askOnce(api, false))
		case "begin":
			api := next()
			fmt.Println(api, askOnce(api, true))
		case "often":
			n, err := strconv.Atoi(next())
			check(err)
			for range n {
				askOnce("messages", false)
			}
		case "kill":
			text, err := os.ReadFile(next())
			check(err)
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			check(err)
			check(syscall.Kill(pid, syscall.SIGKILL))
		case "models":
			resp, err := http.Get(os.Getenv("OPENAI_BASE_URL") + "/models")
			check(err)
			resp.Body.Close()
		case "env":
			name := next()
			fmt.Println(name + "=" + os.Getenv(name))
		case "stdin":
			_, err := io.Copy(os.Stdout, os.Stdin)
			check(err)
		case "until":
			until(next(), next())
		case "die":
			check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
			select {}
		case "exit":
			code, err := strconv.Atoi(next())
			check(err)
			os.Exit(code)
		default:
			fail(word + " is not known")
		}
	}
}

// askOnce sends one streamed call, reads its answer and gives its status.
func askOnce(api string, leave bool) int {
	base, path := os.Getenv("OPENAI_BASE_URL"), "/chat/completions"
	switch api {
	case "messages":
		base, path = os.Getenv("ANTHROPIC_BASE_URL"), "/v1/messages"
	case "gemini":
		base, path = os.Getenv("GOOGLE_GEMINI_BASE_URL"), "/v1beta/models/m:streamGenerateContent?alt=sse"
	}
	prompt := cmp.Or(os.Getenv("PROMPT"), "hello")
	body, err := json.Marshal(map[string]any{
		"model": "m", "max_tokens": 8, "stream": true, "stream_options": map[string]any{"include_usage": true},
		"messages":         []any{map[string]any{"role": "user", "content": prompt}},
		"generationConfig": map[string]any{"maxOutputTokens": 8},
		"contents":         []any{map[string]any{"role": "user", "parts": []any{map[string]any{"text": prompt}}}},
	})
	if api == "silent" { // about usage
		fields := map[string]any{}
		check(json.Unmarshal(body, &fields))
		delete(fields, "stream_options")
		body, err = json.Marshal(fields)
	}
	check(err)
	resp, err := http.Post(base+path, "application/json", bytes.NewReader(body))
	check(err)
	defer resp.Body.Close()
	if leave {
		_, err = io.ReadFull(resp.Body, make([]byte, 1))
	} else {
		var answer []byte
		answer, err = io.ReadAll(resp.Body)
		if api == "silent" {
			fmt.Println("usage seen:", bytes.Contains(answer, []byte(`"usage"`)))
		}
	}
	check(err)
	return resp.StatusCode
}

// until writes down signals, the first line of the file saying that it does.
func until(name, file string) {
	signals := make(chan os.Signal, 8)
	names := map[os.Signal]string{syscall.SIGINT: "INT", syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP",
		syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2", syscall.SIGWINCH: "WINCH"}
	for s := range names {
		signal.Notify(signals, s)
	}
	text := "ready\n"
	for {
		// In one step, so that nobody reads a half.
		check(os.WriteFile(file+".new", []byte(text), 0o600))
		check(os.Rename(file+".new", file))
		var s os.Signal
		select {
		case s = <-signals:
		case <-time.After(time.Minute):
			fail("no signal " + name + " came")
		}
		text += names[s] + "\n"
		if names[s] == name {
			fmt.Print(text)
			os.Exit(7)
		}
	}
}

func check(err error) {
	if err != nil {
		fail(err.Error())
	}
}

func fail(text string) {
	fmt.Fprintln(os.Stderr, "agent: "+text)
	os.Exit(99)
}

// waitproxy PORT: waits until a proxy on that port can be found.
func waitProxy(ts *testscript.TestScript, _ bool, args []string) {
	for range 200 {
		if ts.Exec("weir", "tag", "--listen", args[0]) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("no proxy on port %s is found", args[0])
}
