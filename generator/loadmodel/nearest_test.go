package loadmodel

import "testing"

func TestNearestFindsWhatWasMeant(t *testing.T) {
	known := []string{"demo", "proxy", "sim", "load", "report", "calls", "version", "name", "input_tokens", "qps"}
	for word, want := range map[string]string{
		"prox": "proxy", "reprot": "report", "call": "calls", "lod": "load", "dmeo": "demo", "vers": "version", "input_token": "input_tokens",
		"Inputtokens": "input_tokens", "qsp": "qps",
		"banana": "", "ramp": "", "x": "", "": "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
