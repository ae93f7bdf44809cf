package call

import (
	"go.opentelemetry.io/otel/attribute"

	"weir/proxy/wire"
)

// Series is what metrics tell calls apart by. What a call does not say is
// empty, and Attributes leaves it out. It can be compared.
type Series struct {
	Side      Side
	Operation wire.Operation
	Provider  string
	Model     string // that was asked for
	Host      string // the upstream's
	Port      int
	API       wire.API
	Upstream  string
	Scenario  string
}

// Series is the one that the call belongs to.
func (c *Call) Series() Series {
	return Series{
		Side: c.Side, Operation: c.Operation, Provider: fittingName(c.Provider), Model: fittingName(c.Request.Model), Host: fittingName(c.Host), Port: c.Port,
		API: c.API, Upstream: fittingName(c.Upstream), Scenario: fittingName(c.Scenario),
	}
}

// Attributes are the series' own, under the keys that spans have.
func (s Series) Attributes() []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 12)
	for _, kv := range [...]struct{ key, value string }{
		{keySide, string(s.Side)}, {keyOperation, string(s.Operation)}, {keyProvider, s.Provider}, {keyModel, s.Model},
		{keyHost, s.Host}, {keyAPI, string(s.API)}, {keyUpstream, s.Upstream}, {keyScenario, s.Scenario},
	} {
		if kv.value != "" {
			list = append(list, Attribute(kv.key, kv.value))
		}
	}
	if s.Host != "" && s.Port != 0 {
		list = append(list, attribute.Int(keyPort, s.Port))
	}
	return list
}

// OutcomeAttribute says how calls ended.
func OutcomeAttribute(o Outcome) attribute.KeyValue { return Attribute(keyOutcome, string(o)) }

// ErrorAttribute says by what class of failure they did.
func ErrorAttribute(class string) attribute.KeyValue {
	return Attribute(keyErrorType, class)
}
