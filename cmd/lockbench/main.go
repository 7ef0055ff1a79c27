// Command lockbench benchmarks Redis distributed locks.
package main

import (
	"context"
	"os"

	"github.com/lockbench/lockbench/command"
	_ "github.com/lockbench/lockbench/strategies/all"
)

func main() {
	os.Exit(command.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
