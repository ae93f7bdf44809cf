package generator

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"time"
	"unicode"

	"weir/generator/corpus"
	"weir/proxy/wire"
)

// steering are the fields of a dataset's line that steer weir. They never reach
// the endpoint, and strict ones would refuse them.
var steering = []string{"scenario_id", "metadata", "at_ms", "session_id", "turn", "think_ms", "api"}

// written are the fields that the request's builder writes itself.
var written = []string{"model", "messages", "tools", "max_tokens", "max_completion_tokens", "stream"}

// datasetLine is a line of a dataset, or of an OpenAI batch file.
type datasetLine struct {
	Scenario  string          `json:"scenario_id"`
	Model     string          `json:"model"`
	Messages  json.RawMessage `json:"messages"`
	MaxTokens int             `json:"max_tokens"`
	MaxNewer  int             `json:"max_completion_tokens"`
	Stream    *bool           `json:"stream"`
	Metadata  json.RawMessage `json:"metadata"`
	AtMS      *float64        `json:"at_ms"`
	Session   json.RawMessage `json:"session_id"` // a string, or a number
	Turn      int             `json:"turn"`
	ThinkMS   *float64        `json:"think_ms"`
	API       wire.API        `json:"api"`

	CustomID string          `json:"custom_id"`
	Method   string          `json:"method"`
	URL      string          `json:"url"`
	Body     json.RawMessage `json:"body"`
}

// lineMetadata is what weir itself writes into metadata. What others keep there
// is theirs.
type lineMetadata struct {
	ExpectedInput int     `json:"expected_input_tokens,omitempty"`
	Weight        float64 `json:"scenario_weight,omitempty"`
	WarmUp        bool    `json:"warm_up,omitempty"`
	History       string  `json:"history,omitempty"` // "live", or empty: the messages are the whole prompt
}

const liveHistory = "live"

// lines reads the sessions of JSON Lines. Lines of one session stand together.
func (d *Dataset) lines() iter.Seq2[talk, error] {
	return func(yield func(talk, error) bool) {
		f, err := d.open()
		if err != nil {
			yield(talk{}, err)
			return
		}
		defer f.Close()
		lines := newLineReader(f)
		var open talk // a session whose lines may go on
		for {
			text, err := lines.next()
			if err != nil && !errors.Is(err, io.EOF) {
				yield(talk{}, fmt.Errorf("dataset %s:%d: %w", d.Path, lines.number, err))
				return
			}
			if len(text) == 0 {
				break
			}
			place := fmt.Sprintf("dataset %s:%d", d.Path, lines.number)
			t, turn, follows, err := d.line(text)
			t.place = place
			more := follows && t.session != "" && t.session == open.session
			if err == nil {
				err = check(&open, &t, turn, more)
			}
			if err != nil {
				yield(talk{}, fmt.Errorf("%s: %w", place, err))
				return
			}
			if more {
				open.turns = append(open.turns, t.turns[0])
				open.said = append(open.said, t.said[0])
				continue
			}
			if len(open.turns) > 0 && !yield(open, nil) {
				return
			}
			open = t
		}
		if len(open.turns) > 0 {
			yield(open, nil)
		}
	}
}

// check checks that a line may stand behind the session before it; more says
// that it goes on with it. Only a line with a time of its own may begin with a
// later turn.
func check(open, t *talk, turn int, more bool) error {
	switch want := open.before + len(open.turns) + 1; {
	case more && turn != 0 && turn != want:
		return fmt.Errorf("turn %d of session %s, and the line before is its turn %d; let its turns stand together, in their order", turn, t.session, want-1)
	case !more && turn > 1 && !t.timed:
		return fmt.Errorf("turn %d of session %s does not follow its turn %d; let a session's lines stand together, in their order", turn, t.session, turn-1)
	case !more && t.before > 0 && len(t.session) == 0:
		return fmt.Errorf("turn %d: of which session_id?", turn)
	case !more && t.said[0].Live:
		return fmt.Errorf(`"history": "live" is of a later turn, and this is a session's first`)
	case more && (t.api != open.api || t.model != open.model || t.stream != open.stream || t.scenario != open.scenario):
		return fmt.Errorf("session %s changes its scenario, api, model or stream; let them be the same in all its turns", t.session)
	case more && t.said[0].Live && len(open.turns) > 1 && !open.said[len(open.said)-1].Live,
		more && !t.said[0].Live && open.said[len(open.said)-1].Live:
		return fmt.Errorf(`session %s has later turns with "history": "live" and without; let them be the same in all of them`, t.session)
	}
	return nil
}

// isFilledArray says whether JSON is an array that is not empty.
func isFilledArray(text json.RawMessage) bool {
	var list []json.RawMessage
	return json.Unmarshal(text, &list) == nil && len(list) > 0
}

// line reads one line as a session of one turn; the turn's number, 0 when it says
// none; and whether it is sent after the answer to the turn before it, as a later
// turn is that has a think time, or no time of its own.
func (d *Dataset) line(text []byte) (t talk, turn int, follows bool, err error) {
	var l datasetLine
	if err := json.Unmarshal(text, &l); err != nil {
		return t, 0, false, lineProblem(err)
	}
	if l.Body != nil && l.Messages == nil {
		t, err = d.batchLine(&l)
		return t, 0, false, err
	}
	var meta lineMetadata
	_ = json.Unmarshal(l.Metadata, &meta) // it may be anything: what fits is taken
	switch {
	case l.Messages == nil:
		return t, 0, false, errors.New(`no messages; want {"messages": […], …}, one request a line`)
	case !isFilledArray(l.Messages):
		return t, 0, false, errors.New(`messages: want a list of at least one, as [{"role": "user", "content": "…"}]`)
	case l.AtMS != nil && !(*l.AtMS >= 0 && *l.AtMS < maxMS):
		return t, 0, false, fmt.Errorf("at_ms %g: want milliseconds since the start, 0 or more", *l.AtMS)
	case l.ThinkMS != nil && !(*l.ThinkMS >= 0 && *l.ThinkMS < maxMS):
		return t, 0, false, fmt.Errorf("think_ms %g: want milliseconds, 0 or more", *l.ThinkMS)
	case l.Turn < 0:
		return t, 0, false, fmt.Errorf("turn %d: want 1 or more", l.Turn)
	case l.MaxTokens < 0 || l.MaxNewer < 0:
		return t, 0, false, errors.New("max_tokens: want 1 or more")
	case l.API != "" && wire.For(l.API) == nil:
		return t, 0, false, fmt.Errorf("api %q: want chat, responses, messages, gemini or completions", l.API)
	}
	t = d.talk(l.Scenario, l.API, l.Model, l.Stream)
	t.warmUp, t.weight, t.session = meta.WarmUp, meta.Weight, idOf(l.Session)
	if !nameable(t.scenario) || !nameable(t.session) {
		return t, 0, false, fmt.Errorf("scenario_id and session_id: want at most %d bytes without control characters: they are sent as headers", longestName)
	}
	if l.AtMS != nil {
		t.timed, t.at = true, fromMS(*l.AtMS)
	}
	said := Said{Body: bytes.Clone(text), Live: meta.History == liveHistory}
	output := max(l.MaxTokens, l.MaxNewer)
	input := meta.ExpectedInput
	said.Cut = said.Live && input > 0
	if input <= 0 || said.Live {
		var r wire.Request
		if err := wire.For(wire.Chat).ParseRequest(&r, said.Body); err != nil {
			return t, 0, false, err
		}
		if said.Live {
			if err := onlyUser(&r); err != nil {
				return t, 0, false, err
			}
		}
		if input <= 0 {
			input = d.count(&r, t.model)
		}
	}
	follows = l.Turn != 1 && (l.ThinkMS != nil || l.AtMS == nil || said.Live)
	if !follows {
		t.before = max(l.Turn-1, 0)
	}
	t.turns, t.said = []Turn{{Input: input, Output: output}}, []Said{said}
	if l.ThinkMS != nil {
		t.turns[0].Think = fromMS(*l.ThinkMS)
	}
	return t, l.Turn, follows, nil
}

// batchLine reads a line of an OpenAI batch file. Its body reaches the endpoint
// as it stands, but for model and stream.
func (d *Dataset) batchLine(l *datasetLine) (t talk, err error) {
	method := l.Method
	if method == "" {
		method = "POST"
	}
	api := wire.Find(method, l.URL).API
	if !wire.Find(method, l.URL).Operation.Generates() || wire.For(api) == nil {
		return t, fmt.Errorf("%s %s generates nothing; want POST /v1/chat/completions, /v1/completions or /v1/responses", method, l.URL)
	}
	var r wire.Request
	if err := wire.For(api).ParseRequest(&r, l.Body); err != nil {
		return t, err
	}
	var stream *bool
	if raw := rawFields(l.Body)["stream"]; raw != nil {
		stream = &r.Stream
	}
	t = d.talk(l.Scenario, api, r.Model, stream)
	t.turns = []Turn{{Input: d.count(&r, t.model), Output: int(max(r.MaxTokens.N, 0))}}
	t.said = []Said{{Body: bytes.Clone(l.Body), Raw: true}}
	return t, nil
}

// talk begins a session: what the options say goes before what the file says.
// A line that does not say whether it is streamed is, since only streams tell
// their first token.
func (d *Dataset) talk(scenario string, api wire.API, model string, stream *bool) talk {
	t := talk{scenario: scenario, api: api, model: model, stream: stream == nil || *stream}
	if t.scenario == "" {
		t.scenario = d.ownScenario()
	}
	if d.options.API != "" {
		t.api = d.options.API
	}
	if t.api == "" {
		t.api = wire.Chat
	}
	if d.options.Model != "" {
		t.model = d.options.Model
	}
	return t
}

// count counts a prompt by the model's tokenizer.
func (d *Dataset) count(r *wire.Request, model string) int {
	tok, _ := corpus.ForModel(model)
	c := &conversation{tok: tok}
	return c.countRequest(r, c.tok)
}

// onlyUser checks that a live turn's messages are texts of the user.
func onlyUser(r *wire.Request) error {
	for i := range r.Messages {
		if r.Messages[i].Role != wire.User {
			return errors.New(`with "history": "live" only the user speaks in messages: the model's part is what it answers`)
		}
	}
	if len(r.Messages) == 0 {
		return errors.New("messages is empty")
	}
	return nil
}

// maxMS is the longest time in milliseconds that is taken for one: 30 years.
const maxMS = 1e12

// fromMS reads milliseconds to the nanosecond.
func fromMS(ms float64) time.Duration { return time.Duration(math.Round(ms * 1e6)) }

// idOf is a session's id, whether it is written as a string or as a number.
func idOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

const longestName = 256

// nameable says whether a name can stand in a header.
func nameable(name string) bool {
	return len(name) <= longestName && !strings.ContainsFunc(name, unicode.IsControl)
}

// lineProblem says what is wrong with a line's JSON.
func lineProblem(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("%s: want %s, not %s", kind.Field, kind.Type, kind.Value)
	}
	return fmt.Errorf("is not JSON: %w", err)
}

// rawFields are the fields of an object; nil when it is none.
func rawFields(object []byte) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		return nil
	}
	return fields
}

// longestDatasetLine is the longest line that is read: some 16 million tokens.
const longestDatasetLine = 64 << 20

// lineReader reads the lines of a file that are not blank.
type lineReader struct {
	scan   *bufio.Scanner
	number int // of the line read last, from 1
}

func newLineReader(r io.Reader) *lineReader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), longestDatasetLine)
	return &lineReader{scan: s}
}

// next gives a line, which is good until the next call; io.EOF with none at the
// end.
func (l *lineReader) next() ([]byte, error) {
	for l.scan.Scan() {
		text := l.scan.Bytes()
		if l.number++; l.number == 1 {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			return text, nil
		}
	}
	err := l.scan.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		l.number++
		return nil, fmt.Errorf("is longer than %d MiB; want one request a line", longestDatasetLine>>20)
	}
	if err == nil {
		err = io.EOF
	}
	return nil, err
}
