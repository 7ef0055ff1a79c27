// Command bench is lockbench with ownlock as an additional strategy:
//
//	go run . -s ownlock,spin,handoff -c 100 --hold 1ms
package main

import (
	"context"
	"os"

	"example.com/ownlock"
	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all/goredis"
)

func main() {
	strategies.RegisterStrategy(ownlock.Strategy())
	os.Exit(command.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
