package command

// This file executes the runs of ab, record and claims in child processes, which run this program or other builds of
// it.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
)

// child describes one run that another lockbench process executes.
type child struct {
	program string
	flags   []string
	redis   lockbench.StoreOptions
	report  string // file into which the child writes its report; "" if another generator writes the report
}

// patience is how long a child may run after an interrupt before it is killed.
const patience = 30 * time.Second

// run starts the child and waits until it exits. When ctx ends, run interrupts the child. It returns the report even if
// the child's run broke a guarantee or its figures cannot be trusted.
func (c child) run(ctx context.Context) (*results.Report, error) {
	flags := slices.Concat([]string{"run"}, c.flags, []string{"--quiet"})
	if c.report != "" {
		flags = append(flags, "--output", "json="+c.report)
	}
	cmd := exec.CommandContext(ctx, c.program, flags...)
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
	if c.report == "" && code == ExitOK {
		return nil, nil
	}
	switch code {
	case ExitOK, ExitThreshold, ExitSafety, ExitInvalid:
		report, err := readReport(c.report)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, &exit{ExitConfig, fmt.Errorf("%s wrote no report: it is not a build of lockbench", c.program)}
		case err != nil:
			return nil, &exit{ExitFailure, fmt.Errorf("read the report of %s: %w", c.program, err)}
		}
		return report, nil
	case ExitConfig, ExitUnreachable:
	default:
		code = ExitFailure
	}
	return nil, &exit{code, fmt.Errorf("%s ended with %w:\n%s", c.program, err, said.String())}
}

// environment returns the child's environment. If the child has an address, this is the environment of this process,
// but its LOCKBENCH_ variables are replaced with the address and credentials of Redis. Without an address, the
// environment is unchanged. The password is not an argument, because ps shows arguments.
func (c child) environment() []string {
	if c.redis.Address == "" {
		return os.Environ()
	}
	others := slices.DeleteFunc(os.Environ(), func(set string) bool { return strings.HasPrefix(set, "LOCKBENCH_") })
	return append(others, "LOCKBENCH_REDIS="+c.redis.Address, "LOCKBENCH_CA_FILE="+c.redis.CAFile,
		"LOCKBENCH_TOPOLOGY="+c.redis.Topology, "LOCKBENCH_CERT="+c.redis.CertFile, "LOCKBENCH_KEY="+c.redis.KeyFile,
		"LOCKBENCH_REDIS_PASSWORD="+c.redis.Password)
}
