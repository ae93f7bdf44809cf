package agents

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/generator/sim"
	"weir/store/call"
)

// generating are the calls that ask for an answer. Agents make others beside
// them: they look whether anybody is there, or which models exist, or make a
// connection ready.
func generating(calls []*call.Call) []*call.Call {
	var asked []*call.Call
	for _, c := range calls {
		if c.WantsAnswer() {
			asked = append(asked, c)
		}
	}
	return asked
}

// check wants calls with these outcomes and no others, and all that weir can
// know of them. It gives the calls that ask for tokens.
func (a *agent) check(t *testing.T, e *endpoint, all []*call.Call, want ...call.Outcome) []*call.Call {
	t.Helper()
	calls := generating(all)
	var got []call.Outcome
	for _, c := range calls {
		got = append(got, c.Outcome)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s\n%v", diff, calls)
	}
	a.checkNames(t, calls)
	for _, c := range calls {
		if c.Outcome == call.OK {
			a.checkAnswer(t, c, e.record(c.ResponseID))
		}
	}
	return calls
}

// checkNames wants the client, its scenario and its session to be named.
func (a *agent) checkNames(t *testing.T, calls []*call.Call) {
	t.Helper()
	version := pinned(t, a.folder, a.version)
	for _, c := range calls {
		if c.ClientName != a.client || c.ClientVersion != version {
			t.Errorf("client %q version %q, want %q %q", c.ClientName, c.ClientVersion, a.client, version)
		}
		if c.Scenario != scenario || c.ScenarioFrom != "path" {
			t.Errorf("scenario %q from %q, want %q from its path", c.Scenario, c.ScenarioFrom, scenario)
		}
		if c.Session == "" || c.Session != calls[0].Session {
			t.Errorf("session %q, want the same for all calls, as in the first: %q", c.Session, calls[0].Session)
		}
		if named := c.SessionFrom == "header" || c.SessionFrom == "body"; named != a.session {
			t.Errorf("session %q from %q; the client names it: %v", c.Session, c.SessionFrom, a.session)
		}
		if c.Turn != 1 {
			t.Errorf("turn %d, want 1: the user has spoken once", c.Turn)
		}
		if c.KeyFingerprint == "" || c.KeyFingerprint != calls[0].KeyFingerprint {
			t.Errorf("key %q, want the same for all calls", c.KeyFingerprint)
		}
	}
}

// checkAnswer holds a call that went well against the endpoint's own account.
func (a *agent) checkAnswer(t *testing.T, c *call.Call, truth *sim.Record) {
	t.Helper()
	if truth == nil {
		t.Errorf("the endpoint knows no response %q", c.ResponseID)
		return
	}
	if !c.Streamed || !c.FirstToken.Reached() || !c.LastToken.Reached() {
		t.Errorf("streamed %v, first token %v, last %v; want a stream with both", c.Streamed, c.FirstToken, c.LastToken)
	}
	if c.API != truth.API || c.Operation != truth.Operation {
		t.Errorf("%s %s, want %s %s", c.API, c.Operation, truth.API, truth.Operation)
	}
	if !a.usage {
		if c.UsageSource != call.UsageMissing || c.Usage.Known() {
			t.Errorf("usage %v %s, want none, since the client asks for none", c.Usage, c.UsageSource)
		}
		return
	}
	got, want := c.Usage, truth.Usage
	if c.UsageSource != call.UsageReported || got.Input != want.Input || got.Output != want.Output || got.CacheRead != want.CacheRead {
		t.Errorf("usage %+v %s, want %+v as the endpoint has said", got, c.UsageSource, want)
	}
}
