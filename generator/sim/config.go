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
	StopShare   float64       // of answers: those that end of themselves before max_tokens; the others use it up
	ToolShare   float64       // of answers to requests with tools: those that end in a call
	Reasoning   float64       // share of an answer's tokens that are reasoning
	Pings       time.Duration // between keep-alives while nothing is generated; 0: none
	Compress    bool          // gzip the answers of clients that accept it
	WriteSplit  int           // cut every write into pieces of so many bytes; 0: one event a write
	HoldHead    bool          // send the response's headers with the first token, not at once
	Faults      []Fault
	Limits      Limits
	HiddenLimit int  // requests in flight above which it answers 429, which no header states; 0: none
	Script      bool // follow the directives in prompts that ScriptHelp lists
	Seed        uint64

	// Log takes the record of each request when it has ended; nil: nobody
	// does. It is called by many goroutines.
	Log func(*Record)
}

// EngineConfig are the constants of the serving engine. A step of the batch
// takes
//
//	Step + PerSequence·(sequences that decode) + PerKVToken·(their tokens so far)
//	     + PerToken·(prompt tokens read in it, at most Chunk)
//
// and gives each of the decoding sequences TokensPerStep tokens, as one event.
type EngineConfig struct {
	Slots         int           // sequences in the batch at most
	Step          time.Duration // of a batch, without what follows
	PerSequence   time.Duration
	PerKVToken    time.Duration // of prompt and answer so far, for each sequence that decodes
	PerToken      time.Duration // of prefill
	Chunk         int           // prompt tokens read in one step at most
	TokensPerStep int           // generated for a sequence in one step
	KVTokens      int           // prompt and answer tokens that the batch can hold, so one request too
	CacheTokens   int           // prompt tokens that the prefix cache holds; 0: no cache
}

// presets are engines by name.
//
// small is made for demonstrations on small machines: 4 tokens a step, as
// speculative decoding gives, so that a stream needs few events; and 200,000
// prompt tokens a second. Let q requests a second have i input tokens, none of
// them cached, and o output tokens on average. The share of time that prefill
// takes is p = q·i·PerToken. A step that starts every T gives n = q·T·o/4
// sequences tokens, T = (Step + n·PerSequence) / (1 − p). The quickstart's load
// model has q = 20, i = 2,900, o = 1,200: p = 0.29, T = 14.5 ms, n = 87 of the
// 256 slots, 3.6 ms a token, 6,000 events a second, and at 4,100 tokens for each
// of the 87 about 360,000 of the 2,000,000 KV tokens. From 33 requests a second
// on all slots are taken, and it falls behind. A prompt of 16,000 tokens takes 4
// steps, 116 ms, when it is alone, and two to three times that beside others.
//
// large has the proportions of a 70-billion-parameter model on one node: 10,000
// prompt tokens a second less the steps, 24 ms a token when idle and 37 ms
// with 64 sequences of 4,000 tokens.
var presets = map[string]EngineConfig{
	"small": {Slots: 256, Step: 9 * time.Millisecond, PerSequence: 15 * time.Microsecond, PerToken: 5 * time.Microsecond,
		Chunk: 4096, TokensPerStep: 4, KVTokens: 2_000_000, CacheTokens: 1_000_000},
	"large": {Slots: 64, Step: 24 * time.Millisecond, PerSequence: 150 * time.Microsecond, PerKVToken: 12, PerToken: 100 * time.Microsecond,
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
	if e.Step <= 0 || e.PerSequence < 0 || e.PerKVToken < 0 || e.PerToken < 0 || e.CacheTokens < 0 {
		return e, fmt.Errorf("simulated engine: a step must take more than 0, and nothing may take less than 0")
	}
	return e, nil
}

// check refuses what an endpoint cannot do.
func (c *Config) check() error {
	for name, share := range map[string]float64{"stop": c.StopShare, "tool": c.ToolShare, "reasoning": c.Reasoning} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("simulated endpoint: %s share %g: want 0 to 1", name, share)
		}
	}
	for _, f := range c.Faults {
		if kindOf(f.Kind) == nil || !(f.Share >= 0) || f.Wait < 0 {
			return fmt.Errorf("simulated endpoint: fault %+v: want a kind of %s, and nothing below 0", f, kindNames())
		}
	}
	if err := checkShares(c.Faults); err != nil {
		return fmt.Errorf("simulated endpoint: faults: %w", err)
	}
	if err := c.Limits.check(); err != nil {
		return err
	}
	if c.Pings < 0 || c.WriteSplit < 0 || c.HiddenLimit < 0 {
		return fmt.Errorf("simulated endpoint: pings %v, write split %d and hidden limit %d must not be below 0", c.Pings, c.WriteSplit, c.HiddenLimit)
	}
	return nil
}

func (c *Config) hasModel(name string) bool {
	return len(c.Models) == 0 || slices.Contains(c.Models, name)
}
