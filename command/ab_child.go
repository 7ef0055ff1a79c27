package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
)

// child is one run of one build, a process of its own.
type child struct {
	program string
	flags   []string
	redis   lockbench.StoreOptions
	seed    int
	report  string // the file it writes
	alone   bool   // its flags count, and of the environment only where Redis is
}

// patience is how long a run may take to end after it was told to.
const patience = 30 * time.Second

// run runs it to its end, and ends it early and cleanly when ctx ends. A report
// comes also of a run that broke a guarantee, or whose figures cannot be trusted.
func (c child) run(ctx context.Context) (*results.Report, error) {
	cmd := exec.CommandContext(ctx, c.program, slices.Concat([]string{"run"}, c.flags, []string{"--quiet", "--output", "json=" + c.report})...)
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

// environment is ours, with where Redis is, and what a run of ab is unless the user
// says otherwise. A password stands here, where ps does not show it.
func (c child) environment() []string {
	if c.alone {
		others := slices.DeleteFunc(os.Environ(), func(set string) bool { return strings.HasPrefix(set, "LOCKBENCH_") })
		return append(others, "LOCKBENCH_REDIS="+c.redis.Address, "LOCKBENCH_CA_FILE="+c.redis.CAFile, "LOCKBENCH_TOPOLOGY="+c.redis.Topology)
	}
	ours := map[string]string{
		"LOCKBENCH_REDIS": c.redis.Address, "LOCKBENCH_CA_FILE": c.redis.CAFile, "LOCKBENCH_TOPOLOGY": c.redis.Topology,
		"LOCKBENCH_OUTPUT": "", "LOCKBENCH_DRY_RUN": "", "LOCKBENCH_IMAGE": "", "LOCKBENCH_PIN": "",
	}
	defaults := map[string]string{"LOCKBENCH_NO_FLOORS": "true", "LOCKBENCH_SEED": strconv.Itoa(c.seed)}
	if os.Getenv("LOCKBENCH_WORKLOAD") == "" && !given(c.flags, "workload") { // a file goes before what is usual
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

// lastWords are the last lines of what a process has said.
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
