// Command lock is a build of lockbench with a lock that is worse on purpose:
//
//	go build -ldflags '-X main.delay=300us -X main.commands=1' ./internal/gate/lock
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/gate"
)

// The linker flag -X sets delay and commands, as in the package comment.
var delay, commands = "0s", "0"

func main() {
	wait, err := time.ParseDuration(delay)
	if err != nil {
		fmt.Fprintln(os.Stderr, "main.delay:", err)
		os.Exit(command.ExitConfig)
	}
	more, err := strconv.Atoi(commands)
	if err != nil {
		fmt.Fprintln(os.Stderr, "main.commands:", err)
		os.Exit(command.ExitConfig)
	}
	gate.Register(gate.Fault{Delay: wait, Commands: more})
	os.Exit(command.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
