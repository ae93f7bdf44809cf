package main

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"weir/generator"
	"weir/proxy"
	"weir/shaper"
	"weir/store"
	"weir/store/call"
	"weir/store/report"
)

// sharedSecret names the variable of a secret for several weirs whose stores
// will be merged, so that a key has the same fingerprint in all of them.
const sharedSecret = "WEIR_FINGERPRINT_SECRET"

// stack is what records: the database, and the tracing that writes to it.
// Whatever makes spans is drained before it is closed.
type stack struct {
	a       *app
	db      *store.DB
	tracing *store.Tracing
	metrics *store.Metrics
	logs    *store.Logs
	tracer  trace.Tracer
	shaper  *shaper.Shaper // of the proxies that record here
	flag    string         // --db as it was given
	secret  []byte
	prints  sync.Map // fingerprints by key: a client has one for all its calls
	printed atomic.Int64
}

// mostPrints bounds how many are remembered: a client may send what it likes.
const mostPrints = 1000

// openStack opens the database, which it makes if it does not exist, and begins
// to record. An empty path is the default one. shape is what the proxies that
// record here ask; nil admits all. An interrupt meanwhile waits until all is open
// and ends what comes then: it is no fault of the database.
func (a *app) openStack(path string, shape *shaper.Shaper) (*stack, error) {
	if shape == nil {
		shape = &shaper.Shaper{}
	}
	ctx := a.hard
	s := &stack{a: a, flag: path, shaper: shape}
	var err error
	if path == "" {
		if path, err = store.DefaultPath(a.env); err != nil {
			return nil, usage(err)
		}
	}
	if s.db, err = store.Open(ctx, path, store.Options{}); err != nil {
		return nil, usage(err)
	}
	if shared, _ := a.env(sharedSecret); shared != "" {
		s.secret = []byte(shared)
	} else if s.secret, err = s.db.Secret(ctx, "fingerprint"); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	release, _ := buildVersion()
	options := store.TracingOptions{Version: release, Env: a.env, Log: a.logger(false)}
	if s.tracing, err = store.NewTracing(ctx, s.db, options); err != nil {
		return nil, errors.Join(orUsage(err), s.db.Close())
	}
	if s.metrics, err = s.tracing.NewMetrics(ctx, store.MetricsOptions{
		Env: a.env, Log: options.Log, Lanes: func() []store.Lane { return laneStates(s.shaper) },
		Profiles: a.telemetry.profiles, Scraped: a.telemetry.admin != "", NativeHistograms: a.telemetry.native,
	}); err != nil {
		return nil, errors.Join(orUsage(err), s.close())
	}
	if s.logs, err = s.tracing.NewLogs(ctx, options); err != nil {
		return nil, errors.Join(orUsage(err), s.close())
	}
	if s.logs != nil {
		a.telemetry.sent = s.logs.Handler
	}
	s.tracer = s.tracing.Provider.Tracer("weir")
	return s, nil
}

// orUsage makes a fault of usage of a variable that cannot be followed: nothing was sent.
func orUsage(err error) error {
	var bad store.BadVariable
	if errors.As(err, &bad) {
		return usage(err)
	}
	return err
}

// proxy makes a proxy that records here. It opens upstreams of its own.
func (s *stack) proxy(upstreams []proxy.Upstream) *proxy.Proxy {
	return &proxy.Proxy{Upstreams: slices.Clone(upstreams), Tracer: s.tracer, Fingerprint: s.fingerprint, Shaper: s.shaper, Impair: s.a.impair}
}

// fingerprint tells keys apart: 8 hex digits that mean nothing without the
// store's secret.
func (s *stack) fingerprint(key string) string {
	if known, ok := s.prints.Load(key); ok {
		return known.(string)
	}
	h := hmac.New(sha256.New, s.secret)
	h.Write([]byte(key))
	made := hex.EncodeToString(h.Sum(nil)[:4])
	if s.printed.Add(1) <= mostPrints {
		s.prints.Store(key, made)
	}
	return made
}

func (s *stack) path() string { return s.db.Path }

// dbFlag is what a next command needs to find this database.
func (s *stack) dbFlag() string { return dbFlag(s.flag) }

func dbFlag(path string) string {
	if path == "" {
		return ""
	}
	return " --db " + shellWords(path)
}

// A collector that is down may hold up the end of a command for so long.
const sendOnFor = 5 * time.Second

// A disk that takes nothing is tried for some seconds, on a busy machine longer.
const recordFor = 30 * time.Second

// close writes what is left and closes the database. What was lost is an error:
// the figures miss it.
func (s *stack) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), sendOnFor)
	defer cancel()
	var errs []error
	_ = s.tracing.Provider.ForceFlush(ctx) // the last calls are counted; a failure is told below
	told := make(chan error, 1)
	go func() {
		_ = s.logs.Shutdown(ctx) // what was not taken was told of, and stands on stderr
		told <- s.metrics.Shutdown(ctx)
	}()
	err := s.tracing.Shutdown(ctx)
	if untold := <-told; untold != nil {
		fmt.Fprintf(s.a.err, "! the last metrics were not sent: %v; OTEL_METRICS_EXPORTER=none keeps them at home\n", untold)
	}
	recorder := s.tracing.Recorder
	if recorder.Err() != nil { // how many are lost is known when it has given up
		patience, cancel := context.WithTimeout(context.Background(), recordFor)
		defer cancel()
		_ = recorder.Shutdown(patience) // told by Err and Lost
	}
	if lost := recorder.Lost(); lost > 0 {
		errs = append(errs, fmt.Errorf("%s (a call has one of each side that measured it) could not be written and %s lost: %w", counted(lost, "span"), verb(lost, "is", "are"), orUnknown(recorder.Err())))
	} else if err != nil && recorder.Err() != nil {
		errs = append(errs, err)
	}
	s.tellUnsent(err)
	return errors.Join(append(errs, s.db.Close())...)
}

// tellUnsent says how many spans the collector did not take; err is how sending
// them ended.
func (s *stack) tellUnsent(err error) {
	outbox := s.tracing.Outbox
	if outbox == nil {
		return
	}
	if n := outbox.Rejected(); n > 0 {
		fmt.Fprintf(s.a.err, "! the collector at %s rejected %s for good (%s); the database alone has what it rejected\n", outbox.Target(), counted(n, "span"), outbox.Rejection())
	}
	waiting, miscount := outbox.Waiting(context.Background())
	if waiting == 0 && err == nil && miscount == nil {
		return
	}
	if failed := outbox.Err(); failed != nil {
		err = failed
	}
	because := ""
	if err = errors.Join(err, miscount); err != nil {
		because = " (" + strings.Join(strings.Fields(call.Redact(err.Error())), " ") + ")"
	}
	fmt.Fprintf(s.a.err, "! %s %s for the collector at %s%s; weir export --otlp%s sends them, or the next weir that records for it\n", counted(waiting, "span"), verb(waiting, "waits", "wait"), outbox.Target(), because, s.dbFlag())
}

func orUnknown(err error) error {
	if err == nil {
		return errors.New("the queue was full")
	}
	return err
}

// beginRun writes down that a run starts, so that it can be found while it
// goes, and if it is killed.
func (s *stack) beginRun(ctx context.Context, run *generator.Run, shown string) error {
	return s.db.SaveRun(ctx, s.storedRun(run, shown))
}

// endRun writes down what became of a run, and all its calls. It gives what
// became of it even if that could not be written.
func (s *stack) endRun(run *generator.Run, result *generator.Result, shown string, notes []string) (r store.Run, err error) {
	ctx := context.Background()
	r = s.storedRun(run, shown)
	r.Started, r.Ended = result.Started, result.Started.Add(result.Took)
	r.Verdict, r.Reasons, r.Partial = string(result.Verdict), result.Reasons, result.Partial
	r.Planned, r.Sent, r.NotSent = result.Planned, result.Sent, result.NotSent
	r.PlannedRate, r.SentRate = result.PlannedRate, result.SentRate
	r.LagP50, r.LagP99, r.LagMax = result.Lag.P50, result.Lag.P99, result.Lag.Max
	r.Notes = append(slices.Clone(notes), result.Notes()...)
	r.Scenarios = nil
	for _, sc := range result.PerScenario {
		r.Scenarios = append(r.Scenarios, sc.Scenario)
	}
	if err := s.tracing.Provider.ForceFlush(ctx); err != nil {
		return r, fmt.Errorf("write the run's calls: %w", err)
	}
	return r, s.db.SaveRun(ctx, r)
}

func (s *stack) storedRun(run *generator.Run, shown string) store.Run {
	release, _ := buildVersion()
	r := store.Run{
		ID: run.ID, Target: shown, Seed: run.Plan.Seed, Version: release, Labels: run.Labels, Started: time.Now(),
	}
	if shard := run.Plan.Shard; shard.Of > 1 {
		r.Shard, r.Shards = shard.Index, shard.Of
	}
	if t, d := run.Plan.Trace, run.Plan.Dataset; t != nil {
		r.Name = cmp.Or(t.Name, t.Path)
		if m := run.Plan.Model; m != nil {
			r.Model = m.Source
			for _, sc := range m.Scenarios {
				r.Scenarios = append(r.Scenarios, sc.ID)
			}
		}
	} else if d != nil {
		r.Name, r.Scenarios = d.Path, d.Scenarios
	} else {
		r.Name, r.Model = run.Plan.Model.Name, run.Plan.Model.Source
		for _, sc := range run.Plan.Model.Scenarios {
			r.Scenarios = append(r.Scenarios, sc.ID)
		}
	}
	return r
}

// summarise reads the calls that a selection names and puts them into rows. Of
// the runs in known it tells what they say, and not what the database has of them.
func summarise(ctx context.Context, db *store.DB, words, by []string, known ...store.Run) (*report.Report, error) {
	selection, err := parseSelection(words)
	if err != nil {
		return nil, err
	}
	return report.Summarise(db.Calls(ctx, selection, store.Order{}), report.Options{
		By: by, Selection: selection.String(),
		Runs: func(ids []string) ([]report.Run, error) {
			var runs []report.Run
			for _, id := range ids {
				stored, err := db.Runs(ctx, id)
				if err != nil {
					return nil, err
				}
				for _, r := range append(slices.Clone(known), stored...) {
					if r.ID == id {
						runs = append(runs, report.RunOf(r))
						break
					}
				}
			}
			return runs, nil
		},
		Lost:        func(since time.Time) (int64, error) { return db.Lost(ctx, since) },
		Interrupted: func(since time.Time, runs []string) (int, error) { return interrupted(ctx, db, since, runs) },
	})
}

// interrupted counts the calls that a killed weir left, once for both sides.
func interrupted(ctx context.Context, db *store.DB, since time.Time, runs []string) (int, error) {
	open, err := db.InFlight(ctx)
	if err != nil {
		return 0, err
	}
	traces := map[[16]byte]bool{}
	for _, o := range open {
		of := len(runs) == 0 || slices.Contains(runs, o.Call.Run)
		if o.Interrupted && of && !o.Call.Arrived.Time().Before(since) {
			traces[o.Call.TraceID] = true
		}
	}
	return len(traces), nil
}
