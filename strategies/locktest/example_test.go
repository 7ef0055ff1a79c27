package locktest_test

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// Judge runs the checks without package testing, as a command does.
func ExampleJudge() {
	fixture := locktest.Fixture{
		Open: func(c goredis.Config) (strategies.Locker, error) {
			return baselines.OpenLocal(c.Untyped(), baselines.Options{})
		},
	}
	info := strategies.Info{
		Name: "local", Capacity: 1, MaxInstances: 1,
		Claims: strategies.Claims{Exclusion: true, FIFO: true},
	}
	for _, result := range locktest.Judge(context.Background(), fixture, info) {
		switch {
		case result.Verdict == locktest.Broken:
			fmt.Println(result)
		case result.Check == "exclusion":
			fmt.Println(result)
		}
	}
	// Output:
	// exclusion: passed
}
