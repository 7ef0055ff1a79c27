package command_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/docker"
	"github.com/lockbench/lockbench/internal/gate"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	_ "github.com/lockbench/lockbench/stores"
	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all"
)

func TestMain(m *testing.M) {
	docker.Quiet()
	testscript.Main(m, map[string]func(){
		"lockbench": execute,
		// The command of somebody with locks of his own.
		"author": func() {
			register()
			execute()
		},
		// Two builds of which the second does one command more.
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

// register adds two bad locks that need no Redis.
func register() {
	strategies.Register(strategies.Info{
		Name: "liar", Summary: "claims to exclude and does not", Capacity: 1, Claims: strategies.Claims{Exclusion: true},
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

func (stubborn) Acquire(context.Context, string) (strategies.Lease, error) { select {} }

func TestScripts(t *testing.T) {
	redis := redistest.Start(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("REDIS", redis.URL())
			env.Setenv("LOCKBENCH_NO_FLOORS", "true") // they take half a second of every run
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code, "fit": fit, "redis": ownRedis(t), "generators": generators, "together": together},
	})
}

// ownRedis starts a Redis that no other script talks to: redis VARIABLE.
func ownRedis(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		ts.Setenv(args[0], redistest.Start(t).URL())
	}
}

// fit runs a lockbench whose figures matter less than what it does: up to three times
// if the machine is so busy that they cannot be trusted (112), or, with -counted FILE,
// that this report has no counters of the window.
func fit(ts *testscript.TestScript, neg bool, args []string) {
	file := ""
	if len(args) > 2 && args[0] == "-counted" {
		file, args = args[1], args[2:]
	}
	if neg || len(args) == 0 {
		ts.Fatalf("usage: fit [-counted FILE] command...")
	}
	for try := 1; ; try++ {
		err := ts.Exec(args[0], args[1:]...)
		hurried := exitCode(err) == strconv.Itoa(command.ExitInvalid) ||
			err == nil && file != "" && strings.Contains(ts.ReadFile(file), "window too short for the server's counters")
		if !hurried || try == 3 {
			ts.Check(err)
			return
		}
		ts.Logf("the machine is too busy: once more")
	}
}

// code runs a command and compares its exit code: code 104 lockbench --clients 0.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command...")
	}
	err := ts.Exec(args[1], args[2:]...)
	if got := exitCode(err); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}
