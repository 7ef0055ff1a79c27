package command_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/gate"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all"
	"github.com/lockbench/lockbench/strategies/goredis"
)

func TestMain(m *testing.M) {
	poll.ManyAtATime()
	command.SetAfterTerm(drive.Bound)
	testscript.Main(m, map[string]func(){
		"lockbench": execute,
		// author stands for the program that the author of a lock builds: lockbench with two additional locks, liar and
		// stubborn.
		"author": func() {
			register()
			execute()
		},
		"hurried": func() {
			command.SetAfterTerm(10 * time.Millisecond)
			register()
			execute()
		},
		// driver serves the lock that its first argument names, such as liar, through the driver protocol.
		"driver": func() {
			register()
			serve(os.Args[1])
		},
		// gate-base and gate-dear are two builds to compare. gate-dear sends one more command per acquisition.
		"gate-base": func() {
			gate.Register(gate.Fault{})
			execute()
		},
		"gate-dear": func() {
			gate.Register(gate.Fault{Commands: 1})
			execute()
		},
	})
}

func execute() {
	os.Exit(command.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// serve makes this process a driver for the named lock, on standard input and output. It panics if the driver fails.
func serve(name string) {
	v, err := strategies.NewVariant(name, nil)
	if err == nil {
		err = driver.Serve(os.Stdin, os.Stdout, v,
			func(c goredis.Config) (strategies.Locker, error) { return goredis.Open(v, c) })
	}
	if err != nil {
		panic(err)
	}
}

// register registers two faulty locks that need no Redis: liar excludes no client, and stubborn never returns from
// Acquire.
func register() {
	strategies.Register(strategies.Info{
		Name: "liar", Summary: "claims to exclude and does not", Capacity: 1, Format: "no keys",
		Claims: strategies.Claims{Exclusion: true},
	}, struct{}{}, func(strategies.Config, struct{}) (strategies.Locker, error) { return liar{}, nil })
	strategies.Register(strategies.Info{
		Name: "stubborn", Summary: "never comes back", Capacity: 1,
	}, struct{}{}, func(strategies.Config, struct{}) (strategies.Locker, error) { return stubborn{}, nil })
}

type liar struct{}

func (liar) Acquire(context.Context, string) (strategies.Lease, error) { return liar{}, nil }
func (liar) Release(context.Context) error                             { return nil }
func (liar) Close() error                                              { return nil }

type stubborn struct{ liar }

func (stubborn) Acquire(context.Context, string) (strategies.Lease, error) {
	fmt.Fprintln(os.Stderr, "a stubborn client asks")
	select {}
}

func TestScripts(t *testing.T) { scripts(t, "testdata/script") }

// scripts runs the test scripts (*.txtar) in a directory. They share the Redis at $REDIS.
func scripts(t *testing.T, folder string) {
	t.Helper()
	redis := redistest.Start(t)
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 folder,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("REDIS", redis.URL())
			env.Setenv("ACTIONS", filepath.Join(root, ".github/actions"))
			env.Setenv("PEERS", filepath.Join(root, "internal/apps/claims/data/peers"))
			env.Setenv("COLUMNS", "1000")                // wide, so that lines are not wrapped and expressions match them
			env.Setenv("LOCKBENCH_NO_BASELINES", "true") // they take half a second of every run
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "fit": fit, "redis": ownRedis(t),
			"generators": generators, "together": otherGenerators,
		},
	})
}

// ownRedis implements redis VARIABLE: it starts a Redis that no other script uses, and sets VARIABLE to its URL.
func ownRedis(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		ts.Setenv(args[0], redistest.Start(t).URL())
	}
}

// fit runs a command whose figures do not matter to the test. The command must exit with 0 or, if the only fault is a
// busy machine, with 112. With -crossed, it must exit with 99 instead of 0. With -silent, the command must print
// nothing on standard error except messages about a busy machine.
func fit(ts *testscript.TestScript, neg bool, args []string) {
	silent, want := false, "0"
	if len(args) > 0 && args[0] == "-silent" {
		silent, args = true, args[1:]
	} else if len(args) > 0 && args[0] == "-crossed" {
		want, args = strconv.Itoa(command.ExitThreshold), args[1:]
	}
	if neg || len(args) == 0 {
		ts.Fatalf("usage: fit [-silent | -crossed] command...")
	}
	got := exitCode(ts.Exec(args[0], args[1:]...))
	busy := got == strconv.Itoa(command.ExitInvalid)
	if !busy && got != want {
		ts.Fatalf("exit code %s, want %s", got, want)
	}
	others := stderrWithoutBusyNotes(ts.ReadFile("stderr"))
	if silent && len(others) > 0 || busy && slices.ContainsFunc(others, isMessage) {
		ts.Fatalf("exit code %s, said %q", got, others)
	}
}

// stderrWithoutBusyNotes returns the lines of standard error, except the messages about a busy machine.
func stderrWithoutBusyNotes(stderr string) []string {
	var others []string
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "lockbench: figures that cannot be trusted: ") &&
			!strings.HasSuffix(line, ": the generator was too busy to take its snapshots in time\n") &&
			!strings.HasSuffix(line, ": it or its machine was stopped\n") &&
			!strings.Contains(line, "its generators' windows were open together for") {
			others = append(others, line)
		}
	}
	return others
}

// isMessage reports whether a line of standard error is one of lockbench's messages, as opposed to its progress.
func isMessage(line string) bool { return strings.HasPrefix(line, "lockbench: ") }

// code implements code N COMMAND: it runs the command and checks that its exit code is N.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command...")
	}
	err := ts.Exec(args[1], args[2:]...)
	if got := exitCode(err); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

func exitCode(err error) string {
	if err == nil {
		return "0"
	}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return strconv.Itoa(failed.ExitCode())
	}
	return err.Error()
}

// generators runs two lockbench generators on the Redis at $OWN. Generator 0 writes their merged report to merged.json.
func generators(ts *testscript.TestScript, _ bool, flags []string) {
	one := "lockbench -q -u $OWN --generators 2 " + strings.Join(flags, " ")
	fit(ts, false, []string{"-silent", "sh", "-c", one + " --generator 1 2>other & " + one +
		" --generator 0 -o json=merged.json; code=$?; wait $! && exit $code"})
}

func read(ts *testscript.TestScript, name string) *results.Report {
	f, err := os.Open(ts.MkAbs(name))
	ts.Check(err)
	defer f.Close()
	report, err := results.ReadJSON(f)
	ts.Check(err)
	return report
}

// otherGenerators compares args[0], the report of two generators, with args[1], the report of one process that ran the
// same workload. The acquisitions of the two generators must add up, the commands per acquisition must be similar in
// both reports, and the generators must leave nothing behind.
func otherGenerators(ts *testscript.TestScript, _ bool, args []string) {
	merged, alone := read(ts, args[0]), read(ts, args[1])
	calls := func(run results.Run) float64 { return *run.Server.Window.PerAcquisition(run.Server.Window.Calls) }
	for _, run := range merged.Runs {
		var acquisitions int64
		for _, p := range merged.Generators {
			acquisitions += p.Acquisitions
		}
		if run.Speed.Acquisitions != acquisitions || acquisitions == 0 {
			ts.Fatalf("%s: %d acquisitions are merged of %d", run.Strategy, run.Speed.Acquisitions, acquisitions)
		}
		// If both generators counted the server's commands, the merged number per acquisition would be twice as large. The
		// bounds are wide: contention varies, and the server's counters are not read exactly when a short window begins and
		// ends.
		if one := find(ts, alone, run); run.Server.Window == nil || one.Server.Window == nil {
			ts.Logf("what the server counted in the windows is not known")
		} else if got, want := calls(run), calls(one); got < 0.7*want || got > 1.4*want {
			ts.Fatalf("%s: %.2f commands an acquisition by two generators, %.2f by one", run.Strategy, got, want)
		}
		if left := run.Safety.LeftoverCount; left == nil || *left != 0 || run.Safety.LostLeases > 0 {
			ts.Fatalf("%s: %v left behind, %d leases lost", run.Strategy, run.Safety.Leftovers, run.Safety.LostLeases)
		}
	}
}

func find(ts *testscript.TestScript, r *results.Report, like results.Run) results.Run {
	for _, run := range r.Runs {
		if run.Strategy == like.Strategy {
			return run
		}
	}
	ts.Fatalf("there is no run of %s", like.Strategy)
	return results.Run{}
}
