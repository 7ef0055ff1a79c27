package all_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// isPeer says whether a lock is other people's.
func isPeer(name string) bool {
	_, err := os.Stat(filepath.Join("..", "peers", name))
	return err == nil
}

// program judges the peer of that name on a server by one check, which are its arguments.
func program(peer string) string {
	return strings.ReplaceAll(`// Command judge tries PEER by one check of lockbench's suite: judge ADDRESS CHECK.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/peers/PEER"
)

func main() {
	server := goredis.Node{Options: &redis.UniversalOptions{Addrs: os.Args[1:2]}}
	fixture := locktest.Fixture{
		Open:  func(c goredis.Config) (strategies.Locker, error) { return PEER.Open(c, PEER.Defaults()) },
		Nodes: func() []goredis.Node { return []goredis.Node{server} },
	}
	for _, check := range locktest.Checks() {
		if check.Name == os.Args[2] {
			fmt.Println(check.Judge(context.Background(), fixture, PEER.Strategy().Info))
		}
	}
}
`, "PEER", peer)
}

// run is what a program prints with these arguments.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "judge.go")
	if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	var faults strings.Builder
	command := exec.CommandContext(t.Context(), "go", append([]string{"run", file}, args...)...)
	command.Stderr = &faults
	out, err := command.Output()
	if err != nil {
		t.Errorf("go run: %v\n%s", err, faults.String())
	}
	return string(out)
}

// The programs of the page are whole, and one shows what the suite has found.
func TestPrograms(t *testing.T) {
	t.Parallel()
	type judged struct{ peer, check, want string }
	for _, test := range extent.Chosen([]judged{
		{"redislock", "slow answer", "and another has the lock"},
		{"redsync", "acquire and release", "acquire and release: passed"},
		{"rueidislock", "acquire and release", "acquire and release: passed"},
	}) {
		t.Run(test.peer, func(t *testing.T) {
			t.Parallel()
			if got := run(t, program(test.peer), redistest.Start(t).Addr, test.check); !strings.Contains(got, test.want) {
				t.Errorf("it prints %q, not %q", got, test.want)
			}
		})
	}
}
