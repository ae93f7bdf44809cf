package generator

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"

	"go.opentelemetry.io/otel/trace/noop"

	"weir/generator/loadmodel"
	"weir/proxy/wire"
	"weir/store/call"
)

// What the preflight asks, in so few tokens at most.
const (
	preflightText   = "Answer with the word ready."
	preflightTokens = 16
)

// Preflight proves base URL, key, model id, streaming and usage with one small
// request of each API and model of the plan, outside any run. What may pass by
// itself is asked again, a few times. The error says which of these it is and
// what to do; warnings name what works but not fully.
func (r *Run) Preflight(ctx context.Context) (warnings []string, err error) {
	base, err := r.Target.parse()
	if err != nil {
		return nil, err
	}
	trip := r.transport
	if trip == nil {
		own := newTransport(&r.Target)
		defer own.CloseIdleConnections()
		trip = own
	}
	outside := *r
	outside.ID, outside.Labels, outside.Tracer = "", nil, noop.NewTracerProvider().Tracer("")
	c := newClient(&outside, base, r.timeout(), trip)
	for _, k := range r.Plan.dialects() {
		s := Session{Scenario: "preflight", WarmUp: true, API: k.api, Model: k.model, Stream: k.stream, Turns: []Turn{{Output: preflightTokens}}}
		more, err := r.prove(ctx, c, &s, k)
		if err != nil {
			return warnings, fmt.Errorf("preflight: %s at %s: %w", k, cmp.Or(r.Target.Shown, r.Target.BaseURL), err)
		}
		for _, w := range more {
			warnings = append(warnings, fmt.Sprintf("%s: %s", k, w))
		}
	}
	return warnings, nil
}

// dialect is a way in which a plan speaks to its endpoint.
type dialect struct {
	api    wire.API
	model  string
	stream bool
}

func (d dialect) String() string {
	if d.model == "" {
		return string(d.api)
	}
	return fmt.Sprintf("%s, model %q", d.api, d.model)
}

// dialects are those of the plan, each once.
func (p *Plan) dialects() []dialect {
	if p.Dataset != nil {
		return p.Dataset.dialects
	}
	m, scenarios := p.Model, []loadmodel.Scenario(nil)
	if p.Trace != nil {
		if m == nil || len(m.Models) == 0 {
			return p.tracedDialects()
		}
		var sc *loadmodel.Scenario
		m, sc = p.traceScenario()
		scenarios = []loadmodel.Scenario{*sc}
	} else {
		scenarios = m.Scenarios
	}
	var list []dialect
	for i := range scenarios {
		sc := &scenarios[i]
		shares := []loadmodel.Share{{}} // one that says nothing
		if sc.Model == "" && len(m.Models) > 0 {
			shares = m.Models
		}
		for _, share := range shares {
			// The model as if it had only this one.
			one := *m
			if one.Models = nil; share.Name != "" {
				one.Models = []loadmodel.Share{{Name: share.Name, Share: 1, API: share.API}}
			}
			s := p.describe(&one, sc, 0, p.rng(streamSession, 0))
			if d := (dialect{s.API, s.Model, s.Stream}); !slices.Contains(list, d) {
				list = append(list, d)
			}
		}
	}
	return list
}

// prove sends one small request and judges its answer.
func (r *Run) prove(ctx context.Context, c *client, s *Session, of dialect) (warnings []string, err error) {
	conv := &conversation{Session: *s, format: wire.For(s.API)}
	if conv.format == nil {
		return nil, errors.New("there is no such API: want chat, responses, messages, gemini or completions")
	}
	if r.Plan.Model != nil {
		conv.request.Extra = r.Plan.Model.ExtraBody
	}
	conv.shape()
	conv.request.Messages = []wire.Message{{Role: wire.User, Parts: []wire.Part{{Kind: wire.KindText, Text: preflightText}}}}
	prepared, err := conv.prepare(0)
	if err != nil {
		return nil, err
	}
	for tries := 1; ; tries++ {
		m := c.begin(s, 0, prepared, 0)
		m.ExpectedInput, m.ExpectedOutput = wire.Count{}, wire.Count{}
		err = c.send(ctx, m, prepared, nil)
		if passing := passes(m, err); ctx.Err() == nil && passing && r.pause(ctx, tries, of, m) {
			continue
		} else if ctx.Err() != nil {
			return nil, ctx.Err()
		} else if warnings, err = judgePreflight(m, err, c.keys.given(s.API)); err != nil && passing {
			err = fmt.Errorf("%w (%s; --no-preflight sends the load all the same)", err, count(tries, "try", "tries"))
		}
		return warnings, err
	}
}

// judgePreflight says what an answer proves.
func judgePreflight(m *call.Call, err error, key bool) (warnings []string, _ error) {
	said := ""
	if m.ErrorMessage != "" {
		said = ": " + m.ErrorMessage
	}
	status := fmt.Sprintf("status %d%s", m.Status, said)
	switch {
	case m.Outcome == call.Unreachable:
		return nil, unreachable(m, err)
	case m.Outcome == call.Timeout:
		return nil, errors.New("no whole answer came within the timeout; raise timeout_seconds or --timeout, or see whether the endpoint is overloaded")
	case m.Outcome == call.Auth && !key:
		return nil, fmt.Errorf("the endpoint wants a key, and none was given (%s); set the key's environment variable", status)
	case m.Outcome == call.Auth:
		return nil, fmt.Errorf("the key was refused (%s); check that it is this endpoint's, and that it may use the model", status)
	case m.Outcome == call.RateLimited:
		return []string{"the endpoint already limits the rate (" + status + ")"}, nil
	case blamesModel(m):
		return nil, fmt.Errorf("the endpoint does not know the model (%s); name one that it serves with --model", status)
	case m.Status == 404 || m.Status == 405:
		return nil, fmt.Errorf("nothing answers POST %s (%s); correct the base URL's path, or choose the API that the endpoint speaks with --api", m.Path, status)
	case m.Outcome == call.Malformed:
		return nil, fmt.Errorf("%s answers, but not as this API promises: %s; correct the base URL or the API", m.Path, m.ErrorMessage)
	case m.Outcome == call.Truncated:
		return nil, fmt.Errorf("the stream does not end as the API promises%s; something on the way cuts it", said)
	case m.Outcome == call.StreamError:
		return nil, fmt.Errorf("the stream holds an error%s", said)
	case m.Outcome != call.OK:
		return nil, fmt.Errorf("the request was answered with %s", status)
	case m.Request.Stream && !m.Streamed:
		return nil, errors.New("a stream was asked for, but the answer came whole, so there is no time to first token; look for what buffers it on the way, or set \"stream\": false")
	}
	if m.Streamed && !m.FirstToken.Reached() {
		warnings = append(warnings, fmt.Sprintf("the answer held no token within %d tokens at most", preflightTokens))
	}
	switch m.UsageSource {
	case call.UsageMissing:
		warnings = append(warnings, "no usage is reported: tokens will be estimated, and there is no time per output token")
	case call.UsageSuspicious:
		warnings = append(warnings, "the usage reported contradicts the stream")
	}
	return warnings, nil
}

// blamesModel says whether an error is about the model's name.
func blamesModel(m *call.Call) bool {
	if m.Status < 400 || m.Status >= 500 {
		return false
	}
	said := strings.ToLower(m.ErrorMessage + " " + m.ErrorType + " " + m.ErrorBody)
	if !strings.Contains(said, "model") {
		return false
	}
	for _, phrase := range []string{"not found", "not_found", "not exist", "unknown model", "invalid model", "unsupported model", "no such model", "not supported"} {
		if strings.Contains(said, phrase) {
			return true
		}
	}
	return false
}

// unreachable says why no connection answered.
func unreachable(m *call.Call, err error) error {
	where := net.JoinHostPort(m.Host, fmt.Sprint(m.Port))
	var dns *net.DNSError
	var record tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens on %s (connection refused); start the endpoint, or correct the host and port", where)
	case errors.As(err, &dns):
		return fmt.Errorf("the host name %s cannot be resolved (%s); correct it", dns.Name, dns.Err)
	case errors.As(err, &record), err != nil && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%s does not speak TLS; use http:// if it is meant to be plain", where)
	case errors.As(err, &unknown):
		return fmt.Errorf("TLS: the certificate of %s is signed by an unknown authority; name its CA with --ca-file", where)
	case errors.As(err, &name), errors.As(err, &invalid), errors.As(err, &verify):
		return fmt.Errorf("TLS: the certificate of %s is not valid: %w", where, err)
	}
	return fmt.Errorf("%s cannot be reached: %w; correct the base URL, or see whether the endpoint runs", where, err)
}
