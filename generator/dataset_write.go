package generator

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"weir/proxy/wire"
)

// WriteDataset writes the plan as JSON Lines with the prompts in full, one
// request a line, a session's lines together; `weir load` of it sends what it
// would send of the plan. The same plan and seed give the same bytes. It holds
// one session at a time, and ends early with ctx's error.
func WriteDataset(ctx context.Context, w io.Writer, p *Plan) error {
	if p.Model != nil {
		for _, name := range slices.Concat(steering, written) {
			if p.Model.ExtraBody[name] != nil {
				return fmt.Errorf("extra_body: %q means something of its own in a dataset's line; leave it out, or send the model itself", name)
			}
		}
	}
	out := bufio.NewWriterSize(w, 256<<10)
	weights := p.weights()
	for s, err := range p.Sessions() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		c, err := p.compose(s)
		if err != nil {
			return err
		}
		for turn := range s.Turns {
			line, err := c.datasetLine(turn, weights[s.Scenario])
			if err == nil {
				_, err = out.Write(line)
			}
			if err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// weights are the scenarios' shares of requests, where a model gives them.
func (p *Plan) weights() map[string]float64 {
	all := map[string]float64{}
	if p.Trace == nil && p.Dataset == nil {
		for i := range p.Model.Scenarios {
			all[p.Model.Scenarios[i].ID] = p.Model.Scenarios[i].Weight
		}
	}
	return all
}

// datasetLine writes a turn, from 0, as a line. The later turns of a live session
// hold what is new in them, as much of it as could be needed.
func (c *conversation) datasetLine(turn int, weight float64) ([]byte, error) {
	live := turn > 0 && c.live()
	switch {
	case live:
		c.request.Messages = []wire.Message{{Role: wire.User, Parts: []wire.Part{{Kind: wire.KindText, Text: c.drafts[turn-1]}}}}
		c.request.System, c.request.Tools = "", nil
	case turn > 0:
		if err := c.recite(turn); err != nil {
			return nil, err
		}
	}
	if c.Messages != nil && c.Messages[turn].Raw && c.API != wire.Chat {
		return nil, errors.New("requests of " + c.format.Path(&c.request) + " cannot be written as a dataset, whose messages are in chat's form")
	}
	meta := lineMetadata{ExpectedInput: c.Turns[turn].Input, Weight: weight, WarmUp: c.WarmUp}
	if live {
		meta.History = liveHistory
		if c.Messages != nil && !c.Messages[turn].Cut {
			meta.ExpectedInput = 0 // its text is not cut to fill it
		}
	}
	words, err := chatWords(&c.request)
	if err != nil {
		return nil, fmt.Errorf("scenario %q, session %d, turn %d: %w", c.Scenario, c.Index, turn+1, err)
	}
	l := lineWriter{line: []byte{'{'}}
	l.set("scenario_id", c.Scenario)
	if c.Model != "" {
		l.set("model", c.Model)
	}
	l.raw("messages", words["messages"])
	if tools := words["tools"]; tools != nil {
		l.raw("tools", tools)
	}
	if n := c.Turns[turn].Output; n > 0 && (c.Messages == nil || !c.Messages[turn].Raw) {
		l.set("max_tokens", n)
	}
	l.set("stream", c.Stream)
	l.set("metadata", meta)
	if turn == 0 {
		l.raw("at_ms", inMS(c.Due))
	}
	if c.ID != "" {
		l.set("session_id", c.ID)
		l.set("turn", turn+1)
	}
	if turn > 0 {
		l.raw("think_ms", inMS(c.Turns[turn].Think))
	}
	if c.API != wire.Chat {
		l.set("api", c.API)
	}
	if !live {
		for _, name := range slices.Sorted(maps.Keys(c.request.Extra)) {
			if name != "messages" && name != "tools" {
				l.raw(name, c.request.Extra[name])
			}
		}
	}
	return append(l.line, "}\n"...), nil
}

// chatWords writes the words of a request in chat's form: messages and tools.
func chatWords(r *wire.Request) (map[string]json.RawMessage, error) {
	words := wire.Request{System: r.System, Messages: r.Messages, Tools: r.Tools}
	body, err := wire.For(wire.Chat).AppendRequest(nil, &words)
	if err != nil {
		return nil, err
	}
	fields := rawFields(body)
	for _, name := range []string{"messages", "tools"} {
		if raw := r.Extra[name]; raw != nil {
			fields[name] = raw
		}
	}
	return fields, nil
}

// inMS writes a time in milliseconds, to the nanosecond.
func inMS(d time.Duration) json.RawMessage {
	return strconv.AppendFloat(nil, float64(d)/1e6, 'f', -1, 64)
}

// lineWriter writes an object's fields in their order.
type lineWriter struct{ line []byte }

func (l *lineWriter) set(name string, v any) {
	raw, err := json.Marshal(v)
	if err == nil { // strings, numbers and truths can always be written
		l.raw(name, raw)
	}
}

func (l *lineWriter) raw(name string, raw []byte) {
	if len(l.line) > 1 {
		l.line = append(l.line, ',')
	}
	quoted, _ := json.Marshal(name) // a string can always be written
	l.line = append(append(l.line, quoted...), ':')
	l.line = append(l.line, raw...)
}
