package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// order tells the load client what to read.
type order struct {
	URL     string        `json:"url"`
	Origin  string        `json:"origin"` // in the requests, where URL is a proxy's; else empty
	Streams int           `json:"streams"`
	Repeat  int           `json:"repeat"`
	Events  int           `json:"events"`
	Gap     time.Duration `json:"gap_ns"`
	Body    int           `json:"body"`
	Spread  time.Duration `json:"spread_ns"` // over which the streams begin
}

// outcome is what it read.
type outcome struct {
	TTFT   []time.Duration `json:"ttft_ns"`
	Events int             `json:"events"`
	Bad    []string        `json:"bad"` // streams that were not whole, and why
}

// serveOrders carries out orders, one at a time, a line each.
func serveOrders(in io.Reader, out io.Writer) error {
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := answers.Encode(o.carryOut()); err != nil {
			return err
		}
	}
}

// carryOut reads all streams. Each worker has a connection of its own, reads by
// hand, and so costs little of the machine that it shares with the proxies.
func (o order) carryOut() outcome {
	var all outcome
	var mu sync.Mutex
	var workers sync.WaitGroup
	for i := range o.Streams {
		workers.Go(func() {
			time.Sleep(o.Spread * time.Duration(i) / time.Duration(o.Streams))
			w := worker{order: o}
			defer w.close()
			var ttft []time.Duration
			var events int
			var bad []string
			for range o.Repeat {
				first, n, err := w.read()
				events += n
				if err != nil {
					bad = append(bad, err.Error())
					w.close()
					continue
				}
				ttft = append(ttft, first)
			}
			mu.Lock()
			defer mu.Unlock()
			all.TTFT = append(all.TTFT, ttft...)
			all.Events += events
			all.Bad = append(all.Bad, bad...)
		})
	}
	workers.Wait()
	return all
}

type worker struct {
	order
	conn    net.Conn
	in      *bufio.Reader
	request []byte
}

func (w *worker) close() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

func (w *worker) open() error {
	u, err := url.Parse(w.URL)
	if err != nil {
		return err
	}
	if w.conn, err = net.Dial("tcp", u.Host); err != nil {
		w.conn = nil
		return err
	}
	w.in = bufio.NewReaderSize(w.conn, 2<<10)
	body := `{"model":"bench-1","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"` + strings.Repeat("word ", w.Body/5) + `"}]}`
	w.request = fmt.Appendf(nil, "POST %s/v1/chat/completions?events=%d&gap=%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		w.Origin, w.Events, w.Gap, u.Host, len(body), body)
	return nil
}

var eventEnd = []byte("\n\n")

// read reads one stream and gives the time to its first event, and how many
// events came.
func (w *worker) read() (first time.Duration, events int, err error) {
	if w.conn == nil {
		if err := w.open(); err != nil {
			return 0, 0, err
		}
	}
	// Longer than any stream takes; a proxy that holds one up does not hold up
	// the benchmark.
	_ = w.conn.SetDeadline(time.Now().Add(time.Duration(w.Events)*w.Gap + time.Minute))
	start := time.Now()
	if _, err := w.conn.Write(w.request); err != nil {
		return 0, 0, err
	}
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, 0, fmt.Errorf("status %s", resp.Status)
	}
	buf := make([]byte, 2<<10)
	last := false
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if first == 0 {
				first = time.Since(start)
			}
			events += bytes.Count(buf[:n], eventEnd)
			last = last || bytes.Contains(buf[:n], []byte("[DONE]"))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return first, events, err
		}
	}
	if !last {
		return first, events, errors.New("the stream ended before its last event")
	}
	return first, min(events, w.Events), nil
}
