// River in the bench: `river load URL JOBS`, or `river work URL`.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// Jobs per statement, as in its own bench.
const batch = 5_000

type nothing struct{}

func (nothing) Kind() string { return "noop" }

type worker struct {
	river.WorkerDefaults[nothing]
}

func (*worker) Work(context.Context, *river.Job[nothing]) error { return nil }

func main() {
	ctx := context.Background()
	if err := act(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func act(ctx context.Context, asked []string) error {
	pool, err := pgxpool.New(ctx, asked[1])
	if err != nil {
		return err
	}
	defer pool.Close()
	if asked[0] == "work" {
		return work(ctx, pool)
	}
	jobs, err := strconv.Atoi(asked[2])
	if err != nil {
		return err
	}
	return load(ctx, pool, jobs)
}

func load(ctx context.Context, pool *pgxpool.Pool, jobs int) error {
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	client, err := river.NewClient(driver, &river.Config{})
	if err != nil {
		return err
	}
	return insert(ctx, client, jobs)
}

func insert(ctx context.Context, client *river.Client[pgx.Tx], jobs int) error {
	for left := jobs; left > 0; left -= batch {
		some := make([]river.InsertManyParams, min(left, batch))
		for number := range some {
			some[number].Args = nothing{}
		}
		if _, err := client.InsertManyFast(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// The settings of its own bench; ended jobs are kept for a day, the default.
func work(ctx context.Context, pool *pgxpool.Pool) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Logger:            slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2_000}},
		Workers:           workers,
	})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	select {}
}
