// River with a SQLite file in the bench: `river_sqlite FILE JOBS` drains this many jobs and prints
// the jobs per second.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite"
)

const (
	batch    = 5_000
	patience = 2 * time.Minute
	// Its driver requires one connection and a write-ahead log; as with ours, commits are
	// durable.
	options = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	ended   = "SELECT count(*) FROM river_job WHERE state = 'completed'"
)

type nothing struct{}

func (nothing) Kind() string { return "noop" }

type worker struct {
	river.WorkerDefaults[nothing]
}

func (*worker) Work(context.Context, *river.Job[nothing]) error { return nil }

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rate, err := measured(ctx, os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]float64{"jobs_per_second": rate})
}

func measured(ctx context.Context, path, count string) (float64, error) {
	jobs, err := strconv.Atoi(count)
	if err != nil {
		return 0, err
	}
	pool, err := sql.Open("sqlite", "file:"+path+options)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	client, err := prepared(ctx, pool, jobs)
	if err != nil {
		return 0, err
	}
	took, err := drained(ctx, client, jobs)
	if err != nil {
		return 0, err
	}
	return float64(jobs) / took.Seconds(), checked(ctx, pool, jobs)
}

func prepared(ctx context.Context, pool *sql.DB, jobs int) (*river.Client[*sql.Tx], error) {
	driver := riversqlite.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	client, err := river.NewClient(driver, config())
	if err != nil {
		return nil, err
	}
	return client, insert(ctx, client, jobs)
}

// The settings of its own bench.
func config() *river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{})
	return &river.Config{
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Logger:            slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2_000}},
		Workers:           workers,
	}
}

func insert(ctx context.Context, client *river.Client[*sql.Tx], jobs int) error {
	for left := jobs; left > 0; left -= batch {
		some := make([]river.InsertManyParams, min(left, batch))
		for number := range some {
			some[number].Args = nothing{}
		}
		// In this version InsertManyFast does not work on a file.
		if _, err := client.InsertMany(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// Events report completed jobs once they are stored; a query would use the only connection.
func drained(ctx context.Context, client *river.Client[*sql.Tx], jobs int) (time.Duration, error) {
	events, cancel := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: jobs + 1,
		Kinds:    []river.EventKind{river.EventKindJobCompleted},
	})
	defer cancel()
	began := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, err
	}
	for done := 0; done < jobs; done++ {
		select {
		case <-events:
		case <-ctx.Done():
			return 0, fmt.Errorf("%d of %d jobs have ended: %w", done, jobs, ctx.Err())
		}
	}
	took := time.Since(began)
	return took, client.Stop(ctx)
}

func checked(ctx context.Context, pool *sql.DB, jobs int) error {
	var stored int
	if err := pool.QueryRowContext(ctx, ended).Scan(&stored); err != nil {
		return err
	}
	if stored != jobs {
		return fmt.Errorf("%d of %d jobs are stored as completed", stored, jobs)
	}
	return nil
}
