package generator

import (
	"strings"

	"weir/proxy/wire"
)

// answer gathers what a model says, as far as a later turn must carry it. A
// model's reasoning is not carried: the APIs leave it out, or want it signed.
type answer struct {
	text  strings.Builder
	calls []heardCall
}

type heardCall struct {
	index     int
	id, name  string
	arguments []byte
}

// event takes one event of a stream, which is only lent.
func (a *answer) event(ev *wire.Event) {
	a.text.Write(ev.Text)
	a.text.Write(ev.Refusal)
	for i := range ev.Tools {
		a.tool(&ev.Tools[i])
	}
}

// tool takes a piece of a call. Pieces belong together by their index; where
// the dialect gives none, a name begins a new call.
func (a *answer) tool(d *wire.ToolDelta) {
	at := len(a.calls) - 1
	if d.Index >= 0 {
		for at >= 0 && a.calls[at].index != d.Index {
			at--
		}
	} else if len(d.Name) > 0 {
		at = -1
	}
	if at < 0 {
		a.calls = append(a.calls, heardCall{index: d.Index})
		at = len(a.calls) - 1
	}
	c := &a.calls[at]
	c.id += string(d.ID)
	c.name += string(d.Name)
	c.arguments = append(c.arguments, d.Arguments...)
}

// whole takes an answer that was not streamed.
func (a *answer) whole(w *wire.Answer) {
	for _, p := range w.Parts {
		switch p.Kind {
		case wire.KindText, wire.KindRefusal:
			a.text.WriteString(p.Text)
		case wire.KindTool:
			a.calls = append(a.calls, heardCall{index: -1, id: p.ID, name: p.Name, arguments: []byte(p.Arguments)})
		}
	}
}

// message is the answer as the next turn's history holds it; it has no parts
// when the model said nothing.
func (a *answer) message() wire.Message {
	m := wire.Message{Role: wire.Assistant}
	if a.text.Len() > 0 {
		m.Parts = append(m.Parts, wire.Part{Kind: wire.KindText, Text: a.text.String()})
	}
	m.Parts = append(m.Parts, a.toolCalls()...)
	return m
}

// toolCalls are the calls of tools that the answer made.
func (a *answer) toolCalls() []wire.Part {
	var parts []wire.Part
	for i := range a.calls {
		c := &a.calls[i]
		if c.name == "" {
			continue
		}
		arguments := string(c.arguments)
		if arguments == "" {
			arguments = "{}"
		}
		parts = append(parts, wire.Part{Kind: wire.KindTool, ID: c.id, Name: c.name, Arguments: arguments})
	}
	return parts
}
