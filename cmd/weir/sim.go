package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/generator/sim"
)

// simFlags are the flags of weir sim.
type simFlags struct {
	listen      string
	allowRemote bool
	preset      string
	faults      []string
	usage       bool
	headers     bool
	log         string
	config      sim.Config
}

func (a *app) simCommand() *cobra.Command {
	var f simFlags
	c := &cobra.Command{
		Use:   "sim",
		Short: "Serve a simulated LLM endpoint that speaks every API",
		Long: `Serves OpenAI chat completions, completions and Responses, Anthropic Messages and
Gemini, streamed and not, without a model. Its latencies come from a model of a
serving engine: requests wait for a place in a shared batch, prompts are read at
so much a token unless the prefix cache holds them, and a step of the batch
takes longer the more sequences are in it.

Limits of a minute are buckets that fill without pause. What one request takes
is as at its API's provider: at OpenAI the whole prompt and max_tokens at once,
at Anthropic what the prefix cache does not hold, and the answer as it is
generated.

Faults are KIND:SHARE or KIND:SHARE:TIME:
` + indent(sim.FaultHelp()) + `

With --script a prompt may say what its answer is, so that a client can be led
through a turn, tools and all:
` + indent(sim.ScriptHelp()),
		Example: `  weir sim
  weir sim --listen 127.0.0.1:9001 --preset large --fault 429:1%,stall:1%:3s
  weir sim --rpm 60 --tpm 100000 --burst 10s
  weir sim --log truth.jsonl --seed 7`,
		Args: wantArgs(0, 0, ""),
		RunE: func(c *cobra.Command, _ []string) error { return a.runSim(c.Context(), f, c.Flags()) },
	}
	fl := c.Flags()
	fl.StringVarP(&f.listen, "listen", "l", "127.0.0.1:9001", "address to listen on")
	fl.BoolVar(&f.allowRemote, "allow-remote", false, "listen on an address that others can reach")
	fl.StringVar(&f.preset, "preset", "small", "engine: "+strings.Join(sim.Presets(), " or "))
	fl.StringArrayVar(&f.faults, "fault", nil, "faults by share of requests, as 429:1%,stall:1%:3s; may be repeated")
	fl.BoolVar(&f.usage, "usage", true, "report token usage; --usage=false: say nothing of tokens")
	fl.BoolVar(&f.config.Script, "script", false, "follow the directives in prompts, as [[say TEXT]]")
	fl.StringVar(&f.log, "log", "", "write what was sent and when, a JSON line a request, to this file")
	fl.StringVar(&f.config.Key, "key", "", "API key that requests must carry (default: any will do)")
	fl.Uint64Var(&f.config.Seed, "seed", 0, "seed of every random choice")
	fl.StringSliceVar(&f.config.Models, "models", nil, "models that exist (default: all)")
	fl.Float64Var(&f.config.StopShare, "stop-share", 0, "share of answers that end of themselves before max_tokens, 0 to 1; the others use it up")
	fl.Float64Var(&f.config.Reasoning, "reasoning", 0, "share of an answer's tokens that are reasoning, 0 to 1")
	fl.Float64Var(&f.config.ToolShare, "tool-share", 0, "share of answers to requests with tools that end in a tool call, 0 to 1")
	fl.DurationVar(&f.config.Pings, "pings", 0, "time between keep-alives while nothing is generated; 0: none")
	fl.BoolVar(&f.config.HoldHead, "hold-headers", false, "send the headers of a stream with its first token, not at once")
	fl.BoolVar(&f.config.Compress, "compress", false, "gzip answers for clients that accept it")
	fl.IntVar(&f.config.WriteSplit, "write-split", 0, "cut every write into pieces of so many bytes; 0: whole events")
	simLimits(fl, &f)
	engineFlags(fl, &f.config.Engine)
	return c
}

// simLimits are what the endpoint admits.
func simLimits(fl *pflag.FlagSet, f *simFlags) {
	l := &f.config.Limits
	fl.IntVar(&l.Requests, "rpm", 0, "requests a minute; 0: no limit")
	fl.IntVar(&l.Tokens, "tpm", 0, "tokens a minute, input and output together, as OpenAI limits them; 0: no limit")
	fl.IntVar(&l.InputTokens, "input-tpm", 0, "input tokens a minute, as Anthropic limits them; 0: no limit")
	fl.IntVar(&l.OutputTokens, "output-tpm", 0, "output tokens a minute; 0: no limit")
	fl.DurationVar(&l.Burst, "burst", time.Minute, "how long what is not used of a limit adds up: so much time's worth of it can be used at once")
	fl.BoolVar(&f.headers, "limit-headers", true, "state the limits in headers, as the API's provider does; --limit-headers=false: leave them unstated")
	fl.BoolVar(&l.Milliseconds, "retry-after-ms", false, "say in retry-after-ms too when a refused request would be admitted")
	fl.IntVar(&f.config.HiddenLimit, "hidden-limit", 0, "requests in flight above which it answers 429, which no header states; 0: none")
}

// engineFlags are the engine's constants; those not given are the preset's.
func engineFlags(fl *pflag.FlagSet, e *sim.EngineConfig) {
	fl.IntVar(&e.Slots, "slots", 0, "sequences in the batch at most (default: the preset's, as for all below)")
	fl.DurationVar(&e.Step, "step", 0, "time of a step of the batch")
	fl.DurationVar(&e.PerSequence, "per-sequence", 0, "more for each sequence in it")
	fl.DurationVar(&e.PerKVToken, "per-kv-token", 0, "more for each token, of prompt and answer so far, of the sequences in it")
	fl.DurationVar(&e.PerToken, "per-token", 0, "more for each prompt token read in it")
	fl.IntVar(&e.Chunk, "chunk", 0, "prompt tokens read in one step at most")
	fl.IntVar(&e.TokensPerStep, "tokens-per-step", 0, "tokens that one step gives a sequence")
	fl.IntVar(&e.KVTokens, "kv-tokens", 0, "tokens that the batch can hold")
	fl.IntVar(&e.CacheTokens, "cache-tokens", 0, "prompt tokens that the prefix cache holds; 0 when given: no cache")
}

// simConfig puts the flags given over the preset.
func (f *simFlags) simConfig(changed func(string) bool) (sim.Config, error) {
	c := f.config
	engine, err := sim.Preset(f.preset)
	if err != nil {
		return c, usagef("--preset: %w", err)
	}
	given := c.Engine
	c.Engine = engine
	for name, take := range map[string]func(){
		"slots": func() { c.Engine.Slots = given.Slots }, "step": func() { c.Engine.Step = given.Step },
		"per-sequence": func() { c.Engine.PerSequence = given.PerSequence }, "per-kv-token": func() { c.Engine.PerKVToken = given.PerKVToken },
		"per-token": func() { c.Engine.PerToken = given.PerToken }, "chunk": func() { c.Engine.Chunk = given.Chunk },
		"tokens-per-step": func() { c.Engine.TokensPerStep = given.TokensPerStep }, "kv-tokens": func() { c.Engine.KVTokens = given.KVTokens },
		"cache-tokens": func() { c.Engine.CacheTokens = given.CacheTokens },
	} {
		if changed(name) {
			take()
		}
	}
	if c.Reasoning < 0 || c.Reasoning > 1 || c.ToolShare < 0 || c.ToolShare > 1 {
		return c, usagef("--reasoning and --tool-share: want 0 to 1")
	}
	if c.Faults, err = sim.ParseFaults(strings.Join(f.faults, ",")); err != nil {
		return c, usagef("--fault: %w", err)
	}
	c.NoUsage, c.Limits.Unstated = !f.usage, !f.headers
	return c, nil
}

func (a *app) runSim(ctx context.Context, f simFlags, fl *pflag.FlagSet) error {
	config, err := f.simConfig(fl.Changed)
	if err != nil {
		return err
	}
	l, err := listen("listen", f.listen, f.allowRemote)
	if err != nil {
		return err
	}
	var log *os.File
	if f.log != "" {
		if log, err = os.OpenFile(f.log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err != nil {
			l.Close()
			return usagef("--log: %w", err)
		}
		config.Log = sim.LogTo(log, time.Now())
	}
	endpoint, err := startSim(l, config)
	if err != nil {
		return usage(err)
	}
	fmt.Fprintf(a.out, "a simulated endpoint (%s) listens on %s\n", f.preset, endpoint.url)
	fmt.Fprintf(a.err, "next: weir proxy --upstream %s   (Ctrl-C stops)\n", endpoint.url)
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-endpoint.failed:
	}
	endpoint.stop()
	if log != nil {
		failed = errors.Join(failed, log.Close())
	}
	return failed
}

// simulated is a simulated endpoint that serves.
type simulated struct {
	url      string
	failed   chan error // gets one error if serving ends by itself
	served   chan struct{}
	server   *http.Server
	endpoint *sim.Sim
}

// startSim serves a simulated endpoint on l, which it owns from then on.
func startSim(l net.Listener, c sim.Config) (*simulated, error) {
	endpoint, err := sim.New(c)
	if err != nil {
		l.Close()
		return nil, err
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &simulated{
		url: "http://" + l.Addr().String(), failed: make(chan error, 1), served: make(chan struct{}),
		server: &http.Server{Handler: endpoint, Protocols: &protocols}, endpoint: endpoint,
	}
	go func() {
		defer close(s.served)
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
	}()
	return s, nil
}

// stop ends it at once: nobody depends on what it still would say.
func (s *simulated) stop() {
	s.server.Close()
	<-s.served
	s.endpoint.Close()
}

// indent puts two spaces before each line.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// loopbackListener opens a free port of this machine.
func loopbackListener() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a loopback port: %w", err)
	}
	return l, nil
}
