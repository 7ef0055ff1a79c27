package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/merge"
)

// getReady is how long the processes may take to start and connect before they begin
// together.
func getReady(processes int) time.Duration {
	return 3*time.Second + time.Duration(processes)*200*time.Millisecond
}

// inProcesses runs a command line on one Redis in several processes of this program at the
// same time, each with its own seed, and merges their reports.
func inProcesses(ctx context.Context, words []string, processes int, options lockbench.StoreOptions) (report *results.Report, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	folder, err := os.MkdirTemp("", "lockbench-generators-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the reports: %w", err)
	}
	defer os.RemoveAll(folder)
	redis, err := lockbench.OpenRedis(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, redis.Close(context.WithoutCancel(ctx))) }()

	now := time.Now()
	common := slices.Concat(words, []string{
		"--session", "together" + strconv.FormatInt(now.UnixNano(), 36), "--start-at", now.Add(getReady(processes)).Format(time.RFC3339Nano),
	})
	files, problems := make([]merge.File, processes), make([]error, processes)
	var all sync.WaitGroup
	for i := range processes {
		one := child{
			program: program, flags: slices.Concat(common, []string{"--seed", strconv.Itoa(i + 1)}), redis: redis.Options(),
			report: filepath.Join(folder, strconv.Itoa(i+1)+".json"), alone: true,
		}
		all.Go(func() {
			files[i].Name = fmt.Sprintf("process %d", i+1)
			if files[i].Report, problems[i] = one.run(ctx); problems[i] != nil {
				problems[i] = fmt.Errorf("%s: %w", files[i].Name, problems[i])
			}
		})
	}
	all.Wait()
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if report, err = merge.Merge(files); err != nil {
		return nil, fmt.Errorf("merge the processes' reports: %w", err)
	}
	report.Redis = redis.Describe() // the processes know only its address
	return report, nil
}
