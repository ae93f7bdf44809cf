package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"weir/generator"
	"weir/generator/corpus"
	"weir/store"
)

const tokensOfHelp = "count tokens of models without a public tokenizer by the characters a token that earlier runs against them saw: last, run:7f3a"

// ratesOf learns how the models whose tokenizer weir lacks count tokens, from
// the calls that a selection names, and says what was learned.
func (a *app) ratesOf(ctx context.Context, words string, f loadFlags) (map[string]*corpus.Rates, error) {
	if words == "" {
		return nil, nil
	}
	selection, err := store.ParseSelection(selectionWords(words))
	if err != nil {
		return nil, usage(fmt.Errorf("--tokens-of %w", err))
	}
	db, err := a.openToRead(ctx, f.db)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	samples := map[string][]corpus.Sample{}
	for c, err := range db.Calls(ctx, selection, store.Order{By: "oldest"}) {
		if err != nil {
			return nil, err
		}
		if sample, ok := generator.SampleOf(c); ok {
			samples[c.Request.Model] = append(samples[c.Request.Model], sample)
		}
	}
	rates := map[string]*corpus.Rates{}
	var missing error
	for _, model := range slices.Sorted(maps.Keys(samples)) {
		r, err := corpus.FitRates(samples[model])
		if err != nil {
			missing = fmt.Errorf("model %q: %w", model, err)
			continue
		}
		rates[model] = r
		fmt.Fprintf(a.err, "tokens of %q: %s\n", model, r.Name())
	}
	if len(rates) == 0 {
		if missing == nil {
			missing = errors.New("no call says of how many characters its prompt was, as first turns that weir load sent do to models whose tokenizer weir lacks, and what usage its endpoint reported")
		}
		return nil, usage(&hinted{fmt.Errorf("--tokens-of %s: %w", selection, missing), "weir calls " + shellWords(selectionWords(words)...) + dbFlag(f.db)})
	}
	return rates, nil
}
