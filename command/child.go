package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
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
	"github.com/lockbench/lockbench/results/compare"
	"github.com/lockbench/lockbench/results/merge"
)

// pairedRuns runs two builds in turns, pair by pair.
type pairedRuns struct {
	app        *app
	ab         *ab
	redis      lockbench.StoreOptions
	programs   [2]string // base, head
	flags      []string
	dir        string // of the reports
	temporary  bool
	base, head compare.Side // their reports, of complete pairs only
}

// newPairedRuns checks the two builds and makes a directory for their reports.
func newPairedRuns(ctx context.Context, a *app, f *ab, builds [2]string, flags []string) (*pairedRuns, error) {
	t := &pairedRuns{
		app: a, ab: f, flags: flags, dir: f.keep, base: compare.Side{Name: builds[0]},
		head: compare.Side{Name: builds[1]},
	}
	var problems []error
	for i, name := range builds {
		path, err := binary(name)
		if err == nil {
			err = isLockbench(ctx, name, path)
		}
		t.programs[i] = path
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if t.dir != "" {
		if err := os.Mkdir(t.dir, 0o777); err != nil {
			return nil, fmt.Errorf("--keep: %w", err)
		}
		return t, nil
	}
	dir, err := os.MkdirTemp("", "lockbench-ab-")
	if err != nil {
		return nil, &exit{ExitFailure, fmt.Errorf("make a place for reports: %w", err)}
	}
	t.dir, t.temporary = dir, true
	return t, nil
}

// close removes the reports, unless the user keeps them.
func (t *pairedRuns) close() {
	if t.temporary {
		if err := os.RemoveAll(t.dir); err != nil {
			t.app.say("warning: remove %s: %s", t.dir, err)
		}
	}
}

// run runs the pairs until they are done, ctx ends or a build cannot be measured.
func (t *pairedRuns) run(ctx context.Context) error {
	for i, headFirst := range order(t.ab.pairs, t.ab.seed) {
		sides := [2]int{0, 1}
		if headFirst {
			sides = [2]int{1, 0}
		}
		var pair [2]results.File
		for _, side := range sides {
			if ctx.Err() != nil {
				return nil
			}
			report, err := t.runOne(ctx, side, i+1)
			if err != nil {
				return err
			}
			pair[side] = report
		}
		if ctx.Err() != nil { // the second run was cut short
			return nil
		}
		t.base.Reports = append(t.base.Reports, pair[0])
		t.head.Reports = append(t.head.Reports, pair[1])
		if !t.ab.quiet {
			fmt.Fprintf(t.app.stderr, "[%d/%d] %s\n", i+1, t.ab.pairs, t.pairLine(pair))
		}
	}
	return nil
}

// runOne runs one build once.
func (t *pairedRuns) runOne(ctx context.Context, side, pair int) (results.File, error) {
	name := [2]string{"base", "head"}[side]
	file := fmt.Sprintf("%s-%03d.json", name, pair)
	child := child{
		program: t.programs[side], flags: t.flags, redis: t.redis, seed: pair,
		report: filepath.Join(t.dir, file),
	}
	report, err := child.run(ctx)
	if err != nil && ctx.Err() == nil {
		return results.File{}, fmt.Errorf("%s, run %d: %w", name, pair, err)
	}
	return results.File{Name: file, Report: report}, nil
}

// pairLine is the progress line of a pair.
func (t *pairedRuns) pairLine(pair [2]results.File) string {
	one := func(side int) compare.Side { return compare.Side{Reports: []results.File{pair[side]}} }
	return compare.Glance(one(0), one(1), t.ab.gate.rules)
}

// order says for each pair whether the head goes first: in half of the pairs, in an
// order shuffled by the seed. So neither side gains from its position or from a
// rhythm of the machine.
func order(pairs int, seed int) []bool {
	headFirst := make([]bool, pairs)
	for i := range headFirst {
		headFirst[i] = i%2 == 1
	}
	shuffle := mathrand.New(mathrand.NewPCG(uint64(seed), uint64(pairs)))
	shuffle.Shuffle(pairs, func(i, j int) { headFirst[i], headFirst[j] = headFirst[j], headFirst[i] })
	return headFirst
}

// child is one run of one build, in a process of its own.
type child struct {
	program string
	flags   []string
	redis   lockbench.StoreOptions
	seed    int
	report  string // the file it writes
	alone   bool   // of the LOCKBENCH_ variables, use only those that say where Redis is
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
	code := ExitOK
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		code = ended.ExitCode()
	} else if err != nil {
		return nil, &exit{ExitFailure, fmt.Errorf("start %s: %w", c.program, err)}
	}
	switch code {
	case ExitOK, ExitThreshold, ExitSafety, ExitInvalid:
		report, err := readReport(c.report)
		if err != nil {
			return nil, &exit{ExitFailure, err}
		}
		return report, nil
	case ExitConfig, ExitUnreachable:
	default:
		code = ExitFailure
	}
	return nil, &exit{code, fmt.Errorf("%s ended with %w%s", c.program, err, lastWords(said.String()))}
}

// environment returns our environment with the place of Redis, and with ab's defaults
// where the user sets nothing else. A password belongs here: ps does not show it.
func (c child) environment() []string {
	if c.alone {
		others := slices.DeleteFunc(os.Environ(), func(set string) bool { return strings.HasPrefix(set, "LOCKBENCH_") })
		return append(others, "LOCKBENCH_REDIS="+c.redis.Address, "LOCKBENCH_CA_FILE="+c.redis.CAFile,
			"LOCKBENCH_TOPOLOGY="+c.redis.Topology)
	}
	ours := map[string]string{
		"LOCKBENCH_REDIS": c.redis.Address, "LOCKBENCH_CA_FILE": c.redis.CAFile, "LOCKBENCH_TOPOLOGY": c.redis.Topology,
		"LOCKBENCH_OUTPUT": "", "LOCKBENCH_DRY_RUN": "", "LOCKBENCH_IMAGE": "", "LOCKBENCH_PIN": "",
	}
	defaults := map[string]string{"LOCKBENCH_NO_BASELINES": "true", "LOCKBENCH_SEED": strconv.Itoa(c.seed)}
	// a workload file goes before these defaults
	if os.Getenv("LOCKBENCH_WORKLOAD") == "" && !given(c.flags, "workload") {
		defaults["LOCKBENCH_DURATION"], defaults["LOCKBENCH_WARMUP"] = "2s", "500ms"
	}
	for name, usual := range defaults {
		if os.Getenv(name) == "" {
			ours[name] = usual
		}
	}
	environment := os.Environ()
	for name, value := range ours {
		environment = append(environment, name+"="+value) // the last one counts
	}
	return environment
}

// given says whether a flag is among the arguments.
func given(args []string, flag string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--"+flag || strings.HasPrefix(arg, "--"+flag+"=")
	})
}

// lastWords returns the last lines of a process's output.
func lastWords(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	const most = 10
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	if lines[0] == "" {
		return ""
	}
	return ":\n" + strings.Join(lines, "\n")
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
		one := child{
			program: program, flags: slices.Concat(common, []string{"--seed", strconv.Itoa(i + 1)}),
			redis:  redis.Options(),
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
