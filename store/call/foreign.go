package call

import (
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

// Call is the call that a span tells of; ok is false where it tells of none.
// One of weir's own comes back as it was. Of another program's, the side is
// Imported, and only that is known which the attributes say: a first chunk is
// no first token. Ids are not part of it.
func (f Foreign) Call() (c *Call, ok bool) {
	c = &Call{Instants: Instants{Arrived: At(f.Start)}}
	if _, own := f.Attributes[keySide]; own {
		for key, v := range f.Attributes {
			c.SetProperty(key, v)
		}
		return c, c.Side != "" && c.Done.Reached()
	}
	if f.Start.IsZero() || f.End.Before(f.Start) {
		return nil, false
	}
	if c.Operation, ok = f.operation(); !ok {
		return nil, false
	}
	f.take(c)
	c.Side, c.Done, c.Streamed = Imported, At(f.End), c.Request.Stream
	f.latencies(c)
	f.judge(c)
	switch u := c.Usage; {
	case !u.Input.Known && !u.Output.Known:
		c.UsageSource = UsageMissing
	case u.CacheRead.N+u.CacheWrite.N > u.Input.N: // it was counted without them
		c.UsageSource = UsageSuspicious
	default:
		c.UsageSource = UsageReported
	}
	return c, true
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

// operation is what the call asked for; false for spans of agents, tools and
// all else that is no call of a model.
func (f Foreign) operation() (wire.Operation, bool) {
	switch op := f.text(keyOperation); op {
	case "":
	case string(wire.OpChat), string(wire.OpTextCompletion), string(wire.OpGenerateContent), string(wire.OpEmbeddings):
		return wire.Operation(op), true
	default:
		return "", false
	}
	switch f.text("llm.request.type") {
	case "chat":
		return wire.OpChat, true
	case "completion":
		return wire.OpTextCompletion, true
	case "embedding":
		return wire.OpEmbeddings, true
	case "":
	default:
		return "", false
	}
	named := f.text(keyModel) != "" || f.text("gen_ai.response.model") != ""
	for key := range f.Attributes {
		if named && strings.HasPrefix(key, "gen_ai.usage.") {
			return wire.OpChat, true
		}
	}
	return "", false
}

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
