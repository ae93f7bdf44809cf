package call

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"weir/proxy/wire"
)

// Foreign is a span that was read, of weir's or of other instrumentation.
type Foreign struct {
	Start, End time.Time
	Failed     bool
	Message    string // of a status that is an error

	// Attributes are string, bool, json.Number, float64, int64 or []any.
	Attributes map[string]any
}

// NoCall is why a span is passed over: it tells of no call of a model, or not
// enough of one.
type NoCall string

// The reasons, as parts of a sentence: "3 spans passed over: no time of start".
// A span's operation stands behind NoSuchOperation.
const (
	NoGenAI         NoCall = "they tell of no call of a model"
	NoSuchOperation NoCall = "their operation is no call of a model: "
	NoStart         NoCall = "no time of start that can be read"
	NoEnd           NoCall = "no time of end that can be read"
	EndsTooEarly    NoCall = "they end before they begin"
	NoIDs           NoCall = "no trace and span id in hex digits"
)

func (n NoCall) Error() string { return string(n) }

// Call is the call that a span tells of; the error is a NoCall. One of weir's
// own comes back as it was. Of another program's, the side is Imported, and
// only that is known which the attributes say: a first chunk is no first token,
// and that no stream was spoken of is no word that there was none. Ids are not
// part of it.
func (f Foreign) Call() (*Call, error) {
	c := &Call{Instants: Instants{Arrived: At(f.Start)}}
	if _, own := f.Attributes[keySide]; own {
		for key, v := range f.Attributes {
			c.SetProperty(key, v)
		}
		switch {
		case c.Side != Proxy && c.Side != Client && c.Side != Imported:
			return nil, NoGenAI
		case !c.Done.Reached():
			return nil, NoEnd
		case c.Done < c.Arrived:
			return nil, EndsTooEarly
		}
		return c, nil
	}
	operation, err := f.operation()
	switch {
	case err != nil:
		return nil, err
	case f.Start.IsZero():
		return nil, NoStart
	case f.End.IsZero():
		return nil, NoEnd
	case f.End.Before(f.Start):
		return nil, EndsTooEarly
	}
	f.take(c)
	c.Side, c.Operation, c.Done = Imported, operation, At(f.End)
	f.latencies(c)
	c.Streamed = c.Request.Stream || c.FirstEvent.Reached()
	f.judge(c)
	if told, there := f.stream(); there && !told && !c.Streamed {
		c.NoFirstToken = AbsentNotStreamed
	}
	f.judgeUsage(c)
	return c, nil
}

// judgeUsage brings the usage into weir's normal form.
func (f Foreign) judgeUsage(c *Call) {
	usage, sound := c.Usage.Told(c.Provider)
	c.Usage = usage
	switch {
	case !sound:
		c.UsageSource = UsageSuspicious
	case !usage.Input.Known && !usage.Output.Known:
		c.UsageSource = UsageMissing
	default:
		c.UsageSource = UsageReported
	}
}

// stream is what was said of whether a stream was asked for.
func (f Foreign) stream() (asked, told bool) {
	for _, key := range []string{"gen_ai.request.stream", "gen_ai.request.is_stream", "llm.is_streaming"} {
		if asked, told = f.Attributes[key].(bool); told {
			return asked, told
		}
	}
	return false, false
}

// formerKeys are what instrumentation calls or called what has another key now.
var formerKeys = map[string]string{
	"gen_ai.system":                             "gen_ai.provider.name",
	"gen_ai.usage.prompt_tokens":                "gen_ai.usage.input_tokens",
	"gen_ai.usage.completion_tokens":            "gen_ai.usage.output_tokens",
	"gen_ai.usage.cache_read_input_tokens":      "gen_ai.usage.cache_read.input_tokens",
	"gen_ai.usage.cache_creation_input_tokens":  "gen_ai.usage.cache_write.input_tokens",
	"gen_ai.usage.cache_creation.input_tokens":  "gen_ai.usage.cache_write.input_tokens",
	"gen_ai.usage.reasoning_tokens":             "gen_ai.usage.reasoning.output_tokens",
	"gen_ai.openai.request.seed":                "gen_ai.request.seed",
	"gen_ai.openai.request.service_tier":        "openai.request.service_tier",
	"gen_ai.openai.response.service_tier":       "openai.response.service_tier",
	"gen_ai.openai.response.system_fingerprint": "openai.response.system_fingerprint",
	"gen_ai.request.is_stream":                  "gen_ai.request.stream",
	"llm.is_streaming":                          "gen_ai.request.stream",
	"gen_ai.request.choice.count":               "weir.request.choices",
	"session.id":                                "gen_ai.conversation.id",
	"http.status_code":                          "http.response.status_code",
	"net.peer.name":                             "server.address",
	"net.peer.port":                             "server.port",
}

// formerProviders are the providers that had another name as a system.
var formerProviders = map[string]string{
	"az.ai.openai": "azure.ai.openai", "az.ai.inference": "azure.ai.inference", "azure": "azure.ai.openai",
	"gemini": "gcp.gemini", "vertex_ai": "gcp.vertex_ai", "google": "gcp.gemini", "xai": "x_ai", "bedrock": "aws.bedrock",
}

// take takes over the attributes that weir knows; those by their present keys
// win.
func (f Foreign) take(c *Call) {
	for former, key := range formerKeys {
		if v, there := f.Attributes[former]; there {
			c.SetProperty(key, v)
		}
	}
	for key, v := range f.Attributes {
		if !strings.HasPrefix(key, "weir.") && fieldOf[attribute.Key(key)] != nil {
			c.SetProperty(key, v)
		}
	}
	if reason := f.text("gen_ai.response.finish_reason"); reason != "" && c.Finish == "" {
		c.Finish = reason
	}
	if name, former := formerProviders[strings.ToLower(c.Provider)]; former {
		c.Provider = name
	} else {
		c.Provider = strings.ToLower(c.Provider)
	}
	switch f.text("openai.api.type") {
	case "chat_completions":
		c.API = wire.Chat
	case "responses":
		c.API = wire.Responses
	}
}

func (f Foreign) text(key string) string {
	s, _ := f.Attributes[key].(string)
	return s
}

// operation is what the call asked for; an error for spans of agents, tools and
// all else that is no call of a model.
func (f Foreign) operation() (wire.Operation, error) {
	name := cmp.Or(f.text(keyOperation), f.text("llm.request.type"))
	if op, ok := wire.OperationNamed(name); ok {
		return op, nil
	}
	if name != "" {
		return "", NoSuchOperation + NoCall(strconv.Quote(storable(name, operationLimit)))
	}
	named := f.text(keyModel) != "" || f.text("gen_ai.response.model") != ""
	for key := range f.Attributes {
		if named && strings.HasPrefix(key, "gen_ai.usage.") {
			return wire.OpChat, nil
		}
	}
	return "", NoGenAI
}

// operationLimit is how much of a name is shown that is no operation, in bytes.
const operationLimit = 64

// latencies places the moments that are told as seconds since the beginning.
// The first token's is told by model servers.
func (f Foreign) latencies(c *Call) {
	at := func(keys ...string) Instant {
		for _, key := range keys {
			v := valueOf(f.Attributes[key])
			s := v.AsFloat64()
			if v.Type() == attribute.INT64 {
				s = float64(v.AsInt64())
			} else if v.Type() != attribute.FLOAT64 {
				continue
			}
			if i := c.Arrived + Instant(s*float64(time.Second)); s > 0 && i <= c.Done {
				return reached(i)
			}
		}
		return 0
	}
	c.FirstEvent.Received = at(string(keyFirstChunk))
	c.FirstToken.Received = at("gen_ai.server.time_to_first_token", "gen_ai.latency.time_to_first_token")
}

// judge names the outcome, by the status where there is one, else by the name
// of the error.
func (f Foreign) judge(c *Call) {
	if c.Status == 0 {
		if n, err := strconv.Atoi(c.ErrorType); err == nil {
			c.Status = n
		}
	}
	if c.Outcome = outcomeOf(c.Status); c.Outcome == "" && !f.Failed && c.ErrorType == "" {
		c.Outcome = OK
		return
	}
	c.ErrorMessage = storable(f.Message, messageLimit)
	if c.Outcome == "" {
		c.Outcome = outcomeNamed(c.ErrorType + " " + f.Message)
	}
	if !c.FirstToken.Reached() {
		c.NoFirstToken = absenceOf[c.Outcome]
	}
}

var absenceOf = map[Outcome]Absence{
	RateLimited: AbsentHTTPError, Auth: AbsentHTTPError, Overloaded: AbsentHTTPError, ClientError: AbsentHTTPError, ServerError: AbsentHTTPError,
	Timeout: AbsentTimeout, ClientGone: AbsentClientGone, Unreachable: AbsentUnreachable,
}

// outcomeNamed guesses an outcome by what SDKs call their errors. One that says
// nothing is the server's.
func outcomeNamed(text string) Outcome {
	text = strings.ToLower(text)
	for _, known := range []struct {
		part string
		is   Outcome
	}{
		{"ratelimit", RateLimited}, {"rate_limit", RateLimited}, {"toomanyrequests", RateLimited},
		{"authentication", Auth}, {"permission", Auth}, {"unauthorized", Auth},
		{"overloaded", Overloaded}, {"unavailable", Overloaded}, {"timeout", Timeout}, {"timed out", Timeout}, {"deadline", Timeout},
		{"cancel", ClientGone}, {"abort", ClientGone}, {"connection", Unreachable}, {"connecterror", Unreachable},
		{"badrequest", ClientError}, {"invalid", ClientError}, {"notfound", ClientError}, {"unprocessable", ClientError},
	} {
		if strings.Contains(text, known.part) {
			return known.is
		}
	}
	return ServerError
}
