package store

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"weir/store/call"
)

// BadVariable is an OTEL_ variable that cannot be followed, and what is wanted.
type BadVariable string

func (v BadVariable) Error() string { return string(v) }

// endpoint is where a signal goes, by the OTEL_ variables.
type endpoint struct {
	// target names the collector in logs and in the database: the address without
	// what may be secret and the signal's own path, however it was spelled.
	target   string
	protocol string // grpc or http/protobuf
	// unnamed is the whole address where no variable has one, and the exporter was
	// asked for; else empty: the SDK reads the variables itself.
	unnamed string
	secrets []string // what a collector may echo
}

// variables are those of a process; unset and empty are the same.
type variables func(string) (string, bool)

func (get variables) first(names ...string) (name, value string) {
	for _, name := range names {
		if v, _ := get(name); strings.TrimSpace(v) != "" {
			return name, strings.TrimSpace(v)
		}
	}
	return "", ""
}

// otlpEndpoint reads where a signal, TRACES, METRICS or LOGS, is to be sent, by the
// variables of the OpenTelemetry specification; nil for nowhere. What cannot be
// followed is an error: the SDK would go on without it.
func otlpEndpoint(env func(string) (string, bool), signal string) (*endpoint, error) {
	get := variables(env)
	exporterName, exporter := get.first("OTEL_" + signal + "_EXPORTER")
	_, disabled := get.first("OTEL_SDK_DISABLED")
	if strings.EqualFold(disabled, "true") {
		return nil, nil
	}
	if exporter != "" {
		wanted := false
		for name := range strings.SplitSeq(exporter, ",") {
			switch strings.TrimSpace(name) {
			case "otlp":
				wanted = true
			case "none", "console", "prometheus": // weir serves and prints without being told by these
			default:
				return nil, BadVariable(exporterName + "=" + exporter + ": want otlp or none")
			}
		}
		if !wanted {
			return nil, nil
		}
	}
	specific, general := "OTEL_EXPORTER_OTLP_"+signal+"_", "OTEL_EXPORTER_OTLP_"
	name, address := get.first(specific+"ENDPOINT", general+"ENDPOINT")
	if address == "" && exporter == "" {
		return nil, nil
	}
	protocolName, protocol := get.first(specific+"PROTOCOL", general+"PROTOCOL")
	switch protocol {
	case "":
		protocol = "http/protobuf"
	case "grpc", "http/protobuf":
	default:
		return nil, BadVariable(protocolName + "=" + protocol + ": want grpc or http/protobuf")
	}
	path := "/v1/" + strings.ToLower(signal)
	e := &endpoint{protocol: protocol}
	if address == "" {
		address = "http://localhost:4318"
		if protocol == "grpc" {
			address = "http://localhost:4317"
		}
		if e.unnamed = address; protocol != "grpc" {
			e.unnamed += path
		}
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, BadVariable("OTEL_EXPORTER_OTLP_ENDPOINT for " + strings.ToLower(signal) + ": want a URL, as http://127.0.0.1:4318, or http://127.0.0.1:4317 for gRPC")
	}
	if password, _ := u.User.Password(); password != "" {
		e.secrets = append(e.secrets, password)
	}
	at := url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host), Path: u.Path}
	switch {
	case protocol == "grpc":
		at.Path = ""
	case name == specific+"ENDPOINT" && !strings.HasSuffix(u.Path, path): // posted to as it is
		if at.Path == "" {
			at.Path = "/"
		}
	default:
		at.Path = strings.TrimRight(strings.TrimSuffix(u.Path, path), "/")
	}
	e.target = at.String()
	for _, prefix := range []string{general, specific} {
		if err := e.check(get, prefix); err != nil {
			return nil, err
		}
	}
	if signal == "METRICS" {
		err = milliseconds(get, "OTEL_METRIC_EXPORT_INTERVAL", "OTEL_METRIC_EXPORT_TIMEOUT")
	}
	return e, err
}

// check reads the variables that the SDK follows, and keeps what is secret.
func (e *endpoint) check(get variables, prefix string) error {
	if name, headers := get.first(prefix + "HEADERS"); headers != "" {
		for pair := range strings.SplitSeq(headers, ",") {
			key, value, found := strings.Cut(pair, "=")
			decoded, err := url.PathUnescape(value)
			if !found || err != nil || !headerName.MatchString(strings.TrimSpace(key)) {
				return BadVariable(name + ": want name=value, with a comma between several, and what is special in a value as %20")
			}
			e.secrets = append(append(e.secrets, value, strings.TrimSpace(decoded)), strings.Fields(decoded)...)
		}
	}
	if name, kind := get.first(prefix + "COMPRESSION"); kind != "" && kind != "gzip" && kind != "none" {
		return BadVariable(name + "=" + kind + ": want gzip or none")
	}
	if name, file := get.first(prefix + "CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil || !x509.NewCertPool().AppendCertsFromPEM(pem) {
			return BadVariable(name + "=" + file + ": want a file of certificates in PEM that can be read")
		}
	}
	_, cert := get.first(prefix + "CLIENT_CERTIFICATE")
	_, key := get.first(prefix + "CLIENT_KEY")
	if cert != "" || key != "" {
		if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
			return BadVariable(prefix + "CLIENT_CERTIFICATE and " + prefix + "CLIENT_KEY: want a certificate and its key, files in PEM that can be read")
		}
	}
	return milliseconds(get, prefix+"TIMEOUT")
}

var headerName = regexp.MustCompile("^[0-9A-Za-z!#$%&'*+.^_`|~-]+$")

func milliseconds(get variables, names ...string) error {
	for _, name := range names {
		if _, text := get.first(name); text != "" {
			if n, err := strconv.ParseInt(text, 10, 32); err != nil || n <= 0 {
				return BadVariable(name + "=" + text + ": want a number of milliseconds above 0")
			}
		}
	}
	return nil
}

// answer is what went wrong with an endpoint, fit to be stored and shown.
type answer struct {
	text string
	err  error
}

func (a answer) Error() string { return a.text }
func (a answer) Unwrap() error { return a.err }

// How much of what a collector answers is read for secrets, and is told.
const (
	readAnswer = 64 << 10
	tellAnswer = 400
)

// explain makes an error of sending fit to be stored and shown: it may hold
// what the collector answered, which may be a page with anything in it. It is
// nil for nil.
func (e *endpoint) explain(err error) error {
	var before answer
	if err == nil || errors.As(err, &before) {
		return err
	}
	text := err.Error()
	text = text[:min(len(text), readAnswer)]
	for _, secret := range e.secrets {
		if len(secret) >= 4 { // less tells nothing, and stands in any text
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	text = tidy(text)
	switch whole := err.Error(); {
	case strings.Contains(whole, "malformed HTTP response"), strings.Contains(whole, "readLoopPeekFail"): // as gRPC's greeting is read
		text = "it does not speak HTTP; for gRPC set OTEL_EXPORTER_OTLP_PROTOCOL=grpc (" + text + ")"
	case strings.Contains(whole, "looked like an HTTP/1.1 header"):
		text = "it does not speak gRPC; for HTTP set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf (" + text + ")"
	}
	return answer{text, err}
}

// tidy is a line of what others say, without secrets.
func tidy(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, call.Redact(text))
	return call.Shorten(strings.Join(strings.Fields(text), " "), tellAnswer)
}

// wrap names the endpoint in an error of a signal.
func (e *endpoint) wrap(signal string, err error) error {
	return fmt.Errorf("OTLP%s to %s: %w", signal, e.target, e.explain(err))
}
