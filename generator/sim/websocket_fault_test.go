package sim

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

func TestSocketFaults(t *testing.T) {
	wait := 30 * time.Millisecond
	for _, row := range []struct {
		kind  string
		c     Config
		check func(t *testing.T, p *phone, h heard, ended error, r *Record)
	}{
		{"error", Config{}, func(t *testing.T, p *phone, h heard, ended error, r *Record) {
			if ended != nil || h.failure == nil || h.failure.Message != simulatedFailure.Message || h.text == "" {
				t.Errorf("%+v, %v", h, ended)
			}
			p.say(turn)
			if h := p.heard(); h.failure == nil {
				t.Error("the connection did not stay")
			}
		}},
		{"cut", Config{}, func(t *testing.T, p *phone, h heard, ended error, r *Record) {
			if websocket.CloseStatus(ended) != -1 || ended == nil || h.text == "" || !r.Broken {
				t.Errorf("%+v, ended with %v; broken %v", h, ended, r.Broken)
			}
			if last := r.Events[len(r.Events)-1]; last.What != Text {
				t.Errorf("the last that was written is %q, want text: a message that breaks off does not go out", last.What)
			}
		}},
		{"end", Config{}, func(t *testing.T, p *phone, h heard, ended error, r *Record) {
			if websocket.CloseStatus(ended) != websocket.StatusNormalClosure || h.text == "" || h.terminal {
				t.Errorf("%+v, ended with %v", h, ended)
			}
		}},
		{"slow", Config{}, func(t *testing.T, p *phone, h heard, ended error, r *Record) {
			if first, _ := r.FirstToken(); ended != nil || !h.terminal || first.Before.Sub(r.Admitted) < wait {
				t.Errorf("%+v, %v; the first token came %v after the place", h, ended, first.Before.Sub(r.Admitted))
			}
		}},
		{"stall", Config{}, func(t *testing.T, p *phone, h heard, ended error, r *Record) {
			if ended != nil || !h.terminal || r.Done.Sub(r.Admitted) < wait {
				t.Errorf("%+v, %v; all took %v", h, ended, r.Done.Sub(r.Admitted))
			}
		}},
	} {
		t.Run(row.kind, func(t *testing.T) {
			row.c.Faults = []Fault{{Kind: row.kind, Share: 1, Wait: wait}}
			p := call(t, row.c, websocket.DialOptions{})
			p.say(turn)
			h, _, ended := p.hear()
			r := p.record()
			if r.Fault != row.kind || r.Status != 200 {
				t.Errorf("record %+v", r)
			}
			row.check(t, p, h, ended, r)
		})
	}
}

// Where nothing is generated, nothing goes wrong in its midst.
func TestSocketFaultsPassAPrewarmOver(t *testing.T) {
	p := call(t, Config{Faults: []Fault{{Kind: "cut", Share: 1}}}, websocket.DialOptions{})
	p.say(`{"type":"response.create","generate":false,"model":"m","input":"a"}`)
	if h := p.heard(); !h.terminal || h.failure != nil {
		t.Errorf("%+v", h)
	}
	if r := p.record(); r.Fault != "" || r.Broken {
		t.Errorf("record %+v", r)
	}
}

// A client that leaves in the midst of an answer frees its place.
func TestSocketNoticesThatItsClientLeft(t *testing.T) {
	p := call(t, Config{Faults: []Fault{{Kind: "stall", Share: 1, Wait: time.Hour}}}, websocket.DialOptions{})
	p.say(turn)
	for heardText := false; !heardText; {
		_, msg, err := p.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		heardText = strings.Contains(string(msg), "output_text.delta")
	}
	p.CloseNow()
	if r := p.record(); r.Cancelled.IsZero() || r.Usage.Output.N == 0 {
		t.Errorf("record %+v", r)
	}
}

// Closing the endpoint breaks off sockets, in an answer or between answers.
func TestCloseEndsSockets(t *testing.T) {
	for _, busy := range []bool{false, true} {
		records := make(chan *Record, 1)
		s, err := New(Config{Engine: quick, Log: func(r *Record) { records <- r }, Faults: []Fault{{Kind: "stall", Share: 1, Wait: time.Hour}}})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(s)
		c, _, err := websocket.Dial(t.Context(), server.URL+"/v1/responses", nil)
		if err != nil {
			t.Fatal(err)
		}
		if busy {
			if err := c.Write(t.Context(), websocket.MessageText, []byte(turn)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		server.Close()
		s.Close()
		for err == nil {
			_, _, err = c.Read(t.Context())
		}
		if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
			t.Errorf("busy %v: the client's connection ended with %v", busy, err)
		}
		if busy {
			if r := <-records; !r.Broken {
				t.Errorf("record %+v, want one of an answer that the endpoint broke off", r)
			}
		}
		c.CloseNow()
	}
}
