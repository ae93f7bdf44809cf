// Package sim is a simulated LLM endpoint that knows the right answers. It
// speaks every dialect that weir does, and its latencies come from a model of
// a serving engine, not from a sleep: requests wait for a place in a shared
// batch, reading a prompt costs time per token that no cache holds, and every
// step of the batch takes longer the more sequences it has. It takes down what
// it wrote and when, so that what weir measures can be held against it.
package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Config is a simulated endpoint. The zero Config is the preset small without
// faults, with usage, whose random choices come from seed 0.
type Config struct {
	Engine EngineConfig

	Models      []string      // that exist; empty: every model does
	Key         string        // that requests must carry; empty: none
	NoUsage     bool          // say nothing of tokens
	ToolShare   float64       // of answers to requests with tools: those that end in a call
	Reasoning   float64       // share of an answer's tokens that are reasoning
	Pings       time.Duration // between keep-alives while nothing is generated; 0: none
	Compress    bool          // gzip the answers of clients that accept it
	WriteSplit  int           // cut every write into pieces of so many bytes; 0: one event a write
	HoldHead    bool          // send the response's headers with the first event, not at once
	Faults      []Fault
	HiddenLimit int // requests in flight above which it answers 429; 0: none
	Seed        uint64

	// Log takes the record of each request when it has ended; nil: nobody
	// does. It is called by many goroutines.
	Log func(*Record)
}

// EngineConfig are the constants of the serving engine. A step of the batch
// takes Step + PerSequence for each sequence that decodes + PerToken for each
// prompt token that is read in it, and gives each of the decoding sequences
// TokensPerStep tokens.
type EngineConfig struct {
	Slots         int           // sequences in the batch at most
	Step          time.Duration // of a batch, without what follows
	PerSequence   time.Duration
	PerToken      time.Duration // of prefill
	Chunk         int           // prompt tokens read in one step at most
	TokensPerStep int           // generated for a sequence in one step
	KVTokens      int           // prompt and answer tokens that the batch can hold
	CacheTokens   int           // prompt tokens that the prefix cache holds; 0: no cache
}

// presets are engines by name.
//
// small is made for demonstrations on small machines: 4 tokens every 10 ms or
// so, as speculative decoding gives, and 200,000 prompt tokens a second. At 20
// requests a second of the quickstart's load model it reads some 58,000 prompt
// tokens a second, so prefill takes about 0.3 of its time.
//
// large has the proportions of a 70-billion-parameter model on one node.
var presets = map[string]EngineConfig{
	"small": {Slots: 256, Step: 9 * time.Millisecond, PerSequence: 15 * time.Microsecond, PerToken: 5 * time.Microsecond,
		Chunk: 4096, TokensPerStep: 4, KVTokens: 2_000_000, CacheTokens: 1_000_000},
	"large": {Slots: 64, Step: 24 * time.Millisecond, PerSequence: 150 * time.Microsecond, PerToken: 100 * time.Microsecond,
		Chunk: 2048, TokensPerStep: 1, KVTokens: 400_000, CacheTokens: 200_000},
}

// Presets are the names of the presets.
func Presets() []string { return []string{"small", "large"} }

// Preset gives the engine of a name.
func Preset(name string) (EngineConfig, error) {
	e, ok := presets[name]
	if !ok {
		return e, fmt.Errorf("preset %q: want one of %s", name, strings.Join(Presets(), ", "))
	}
	return e, nil
}

// check fills what is unset from the preset small and refuses what cannot be.
func (e EngineConfig) check() (EngineConfig, error) {
	if e == (EngineConfig{}) {
		e = presets["small"]
	}
	if e.Slots < 1 || e.Chunk < 1 || e.TokensPerStep < 1 || e.KVTokens < 1 {
		return e, fmt.Errorf("simulated engine: slots %d, chunk %d, tokens per step %d and KV tokens %d must all be at least 1", e.Slots, e.Chunk, e.TokensPerStep, e.KVTokens)
	}
	if e.Step <= 0 || e.PerSequence < 0 || e.PerToken < 0 || e.CacheTokens < 0 {
		return e, fmt.Errorf("simulated engine: a step must take more than 0, and nothing may take less than 0")
	}
	return e, nil
}

func (c *Config) hasModel(name string) bool {
	return len(c.Models) == 0 || slices.Contains(c.Models, name)
}
