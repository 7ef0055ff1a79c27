// Command go is a driver for every strategy of lockbench: -s "exec:go pubsub". A comparison with the same strategy
// inside lockbench shows the overhead of the driver. Without the name of a strategy, the command drives noop, which
// does nothing.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all"
	"github.com/lockbench/lockbench/strategies/goredis"
)

func main() {
	err := serve(cmp.Or(strings.Join(os.Args[1:], " "), "noop"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(list string) error {
	variants, err := strategies.ParseVariants(list)
	if err == nil && len(variants) != 1 {
		err = errors.New("one strategy is needed, such as pubsub or spin:backoff=none")
	}
	if err != nil {
		return err
	}
	return driver.Serve(os.Stdin, os.Stdout, variants[0], func(c goredis.Config) (strategies.Locker, error) {
		return goredis.Open(variants[0], c)
	})
}
