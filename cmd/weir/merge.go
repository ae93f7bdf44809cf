package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"weir/generator"
	"weir/store"
)

func (a *app) mergeCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "merge DB…",
		Short: "Put the databases of several machines together into a new one",
		Long: `Writes all that some databases hold into a new one: calls in the order in which
they ended, what was kept of them, and runs. The parts that weir load --shard sent
on several machines become the one run that they are.

What the databases kept secret stays there, so a key may have another fingerprint
in each; shards of one run name it alike. Only what has been written is merged:
do it when the runs have ended.`,
		Example: `  weir merge a.db b.db -o all.db
  weir merge shard-*.db --into all.db && weir report last --db all.db`,
		Args: wantArgs(1, -1, "the databases to put together"),
		RunE: func(c *cobra.Command, args []string) error { return a.runMerge(c.Context(), args, out) },
	}
	c.Flags().StringVarP(&out, "into", "o", "", "the new database, which must not exist")
	onceOnly(c.Flags(), "into")
	return c
}

func (a *app) runMerge(ctx context.Context, from []string, into string) error {
	if into == "" {
		return usagef("merge: -o FILE is missing: where should the merged database be?")
	}
	m, err := store.Merge(ctx, into, from, judgeLag)
	if err != nil {
		return usage(err)
	}
	fmt.Fprintf(a.out, "%s: %s and %s of %s\n", into, counted(m.Spans, "span"), counted(m.Runs, "run"), counted(m.Stores, "database"))
	fmt.Fprintf(a.err, "next: weir report last%s\n", dbFlag(into))
	return nil
}

// judgeLag holds the lag of a run of shards to what that of any run is held to.
func judgeLag(lag store.Lag) (string, error) {
	rank := generator.JudgedRank(lag.Requests)
	if rank == 0 {
		return "", nil
	}
	judged, err := lag.At(rank)
	return generator.JudgeLag(judged, lag.P99, lag.TTFT), err
}
