package main

import "github.com/spf13/pflag"

// usageMode is what a proxy does where a client's request for a stream would
// bring no token usage.
type usageMode string

const (
	usagePass   usageMode = "pass"   // nothing: no request is changed
	usageInject usageMode = "inject" // it asks in the client's place
)

func (m *usageMode) add(fl *pflag.FlagSet) {
	fl.StringVar((*string)(m), "usage", string(usagePass), "token usage that clients do not ask for in OpenAI's chat and completions streams: pass leaves it missing, inject asks for it and takes what that adds out of the answer")
}

func (m usageMode) check() error {
	if m != usagePass && m != usageInject {
		return usagef("--usage %s: want pass or inject", string(m))
	}
	return nil
}
