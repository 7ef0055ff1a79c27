package locktest_test

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/local"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// A command judges a lock without package testing.
func ExampleJudge() {
	fixture := locktest.Fixture{
		Open: func(c goredis.Config) (strategies.Locker, error) { return local.Open(c.Untyped(), local.Options{}) },
	}
	info := strategies.Info{
		Name: "local", Capacity: 1, MaxInstances: 1,
		Claims: strategies.Claims{Exclusion: true, FIFO: true},
	}
	for _, verdict := range locktest.Judge(context.Background(), fixture, info) {
		switch {
		case verdict.Outcome == locktest.Broken:
			fmt.Println(verdict)
		case verdict.Check == "exclusion":
			fmt.Println(verdict)
			fmt.Println(verdict.Proves)
		}
	}
	// Output:
	// exclusion: passed
	// Clients of three instances that fight for one key are never inside at a time, and what they were answered is what one lock can have answered.
}
