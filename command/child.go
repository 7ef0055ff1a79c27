package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/merge"
)

// child is a run of a lockbench in a process of its own.
type child struct {
	program string
	flags   []string
	redis   lockbench.StoreOptions
	report  string // the file that it writes
}

// patience is how long a run may take to end after an interrupt.
const patience = 30 * time.Second

// run runs the child to its end, and interrupts it when ctx ends. It returns a report
// also if the run broke a guarantee or its figures cannot be trusted.
func (c child) run(ctx context.Context) (*results.Report, error) {
	cmd := exec.CommandContext(ctx, c.program,
		slices.Concat([]string{"run"}, c.flags, []string{"--quiet", "--output", "json=" + c.report})...)
	cmd.Env = c.environment()
	var said bytes.Buffer
	cmd.Stderr = &said
	apart(cmd)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return nil, &exit{ExitFailure, fmt.Errorf("start %s: %w", c.program, err)}
	}
	code := cmd.ProcessState.ExitCode()
	switch code {
	case ExitOK, ExitThreshold, ExitSafety, ExitInvalid:
		report, err := readReport(c.report)
		if err != nil {
			return nil, &exit{ExitFailure, fmt.Errorf("the report of %s: %w", c.program, err)}
		}
		return report, nil
	case ExitConfig, ExitUnreachable:
	default:
		code = ExitFailure
	}
	return nil, &exit{code, fmt.Errorf("%s ended with %w:\n%s", c.program, err, said.String())}
}

// environment returns our environment with the place of Redis, and without the other variables that
// stand in for flags. A password belongs here: ps does not show it.
func (c child) environment() []string {
	others := slices.DeleteFunc(os.Environ(), func(set string) bool { return strings.HasPrefix(set, "LOCKBENCH_") })
	return append(others, "LOCKBENCH_REDIS="+c.redis.Address, "LOCKBENCH_CA_FILE="+c.redis.CAFile,
		"LOCKBENCH_TOPOLOGY="+c.redis.Topology)
}

// getReady is how long the processes may take to start and connect before they begin
// together.
func getReady(processes int) time.Duration {
	return 3*time.Second + time.Duration(processes)*200*time.Millisecond
}

// inProcesses runs a command line on one Redis in several processes of this program at the
// same time, each with its own seed, and merges their reports.
func inProcesses(
	ctx context.Context, words []string, processes int, options lockbench.StoreOptions,
) (report *results.Report, err error) {
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
		"--session", "together" + strconv.FormatInt(now.UnixNano(), 36),
		"--start-at", now.Add(getReady(processes)).Format(time.RFC3339Nano),
	})
	files, problems := make([]results.File, processes), make([]error, processes)
	var all sync.WaitGroup
	for i := range processes {
		seed := strconv.Itoa(i + 1)
		one := child{
			program: program, flags: slices.Concat(common, []string{"--seed", seed}), redis: redis.Options(),
			report: filepath.Join(folder, seed+".json"),
		}
		all.Go(func() {
			files[i].Name = "process " + seed
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
