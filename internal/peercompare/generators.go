package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/merge"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// generator is the argument that makes this program one of several generators.
const generator = "generate"

const (
	// ready is how long generators that run have to connect.
	ready = 2 * time.Second
	// grace is how long one may take to write its report after an interrupt.
	grace = 10 * time.Second
)

// order is what a generator is told on its standard input.
type order struct {
	Strategies []string
	Workload   workloads.Spec
	Redis      lockbench.RedisOptions
	Session    string
	Start      time.Time
}

// generate measures as one of several processes. It writes a line when it is there, waits
// for its order and writes its report.
func generate(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	if _, err := fmt.Fprintln(stdout, "ready"); err != nil {
		return fmt.Errorf("say that it is ready: %w", err)
	}
	var told order
	if err := json.NewDecoder(stdin).Decode(&told); err != nil {
		return fmt.Errorf("read what to measure: %w", err)
	}
	variants, err := strategies.ParseVariants(strings.Join(told.Strategies, ","))
	if err != nil {
		return err
	}
	report, err := lockbench.Run(ctx, lockbench.Plan{
		Strategies: variants, Workload: told.Workload, Rounds: 1, Redis: told.Redis, Session: told.Session, Start: told.Start,
	})
	if report == nil {
		return err
	}
	return errors.Join(err, results.WriteJSON(stdout, report))
}

// together carries a plan out in so many processes at the same time, each with the
// workload that it has, and merges what they report.
func together(ctx context.Context, plan lockbench.Plan, processes int) (*results.Report, error) {
	return onOwn(ctx, plan, func(plan lockbench.Plan, _ *url.URL) (*results.Report, error) {
		program, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		told := order{Workload: plan.Workload, Redis: plan.Redis, Session: "peers" + strconv.FormatInt(time.Now().UnixNano(), 36)}
		for _, v := range plan.Strategies {
			told.Strategies = append(told.Strategies, v.Name())
		}
		files, faults := make([]merge.File, processes), make([]error, processes)
		start := new(gate)
		start.missing.Add(processes)
		var all sync.WaitGroup
		for i := range processes {
			told := told
			told.Workload.Seed += int64(i) * 1000
			all.Go(func() {
				name := fmt.Sprintf("process %d", i+1)
				report, err := generated(ctx, program, told, start)
				files[i] = merge.File{Name: name, Report: report}
				if err != nil {
					faults[i] = fmt.Errorf("%s: %w", name, err)
				}
			})
		}
		all.Wait()
		if slices.ContainsFunc(files, func(f merge.File) bool { return f.Report == nil }) {
			return nil, errors.Join(faults...)
		}
		report, err := merge.Merge(files)
		return report, errors.Join(append(faults, err)...)
	})
}

// gate has all generators begin at one time, once all of them are there or have failed.
type gate struct {
	missing sync.WaitGroup
	once    sync.Once
	at      time.Time
}

func (g *gate) opens() time.Time {
	g.missing.Wait()
	g.once.Do(func() { g.at = time.Now().Add(ready) })
	return g.at
}

// generated is what one process reports.
func generated(ctx context.Context, program string, told order, start *gate) (report *results.Report, err error) {
	arrived := sync.OnceFunc(start.missing.Done)
	defer arrived()
	process := exec.CommandContext(ctx, program, generator)
	process.Cancel = func() error { return process.Process.Signal(syscall.SIGTERM) }
	process.WaitDelay = grace
	var said bytes.Buffer
	process.Stderr = &said
	in, err := process.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start it: %w", err)
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start it: %w", err)
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("start it: %w", err)
	}
	defer func() {
		if ended := process.Wait(); ended != nil {
			err = errors.Join(err, fmt.Errorf("%w: %s", ended, strings.TrimSpace(said.String())))
		}
	}()
	defer in.Close() // a process without an order ends
	answers := bufio.NewReader(out)
	if _, err := answers.ReadString('\n'); err != nil {
		return nil, fmt.Errorf("wait until it is there: %w", err)
	}
	arrived()
	told.Start = start.opens()
	if err := json.NewEncoder(in).Encode(told); err != nil {
		return nil, fmt.Errorf("tell it what to measure: %w", err)
	}
	return results.ReadJSON(answers)
}
