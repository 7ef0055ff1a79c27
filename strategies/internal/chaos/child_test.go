package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// childVariable has this test's binary be a process that waits for a lock.
const childVariable = "LOCKBENCH_TEST_WAITERS"

func TestMain(m *testing.M) {
	if task := os.Getenv(childVariable); task != "" {
		if err := waitAsChild(task); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// childTask is what a child has to do.
type childTask struct {
	Strategy, Addr string
	TTL            time.Duration
	Waiters        int
}

// waiting is what a child's waiter says first.
const waiting = "waiting"

// waitAsChild has each waiter say that it begins, acquire "key", write its token and
// release. It ends early with standard input.
func waitAsChild(text string) error {
	var task childTask
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		return err
	}
	variants, err := strategies.ParseVariants(task.Strategy)
	if err != nil {
		return err
	}
	options := &redis.UniversalOptions{Addrs: []string{task.Addr}}
	client := redis.NewUniversalClient(options)
	defer func() { _ = client.Close() }()
	locker, err := goredis.Open(variants[0], goredis.Config{
		Nodes:  []goredis.Node{{Client: client, Options: options}},
		Prefix: "trial:", TTL: task.TTL,
	})
	if err != nil {
		return err
	}
	defer func() { _ = locker.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var all sync.WaitGroup
	for range task.Waiters {
		all.Go(func() {
			fmt.Println(waiting)
			lease, err := locker.Acquire(ctx, "key")
			if err == nil {
				fmt.Println(lease.(strategies.Fenced).FencingToken())
				err = lease.Release(ctx)
			}
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	all.Wait()
	return nil
}

// child is such a process.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	said  *bufio.Scanner
	ended bool
}

func startChild(t *testing.T, task childTask) *child {
	t.Helper()
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // closed when this process ends
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, said: bufio.NewScanner(stdout)}
	t.Cleanup(c.kill)
	return c
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatalf("%v: %v", s, err)
	}
}

// kill ends it, and returns when its sockets are closed.
func (c *child) kill() {
	if !c.ended {
		c.ended = true
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}

// line is the next that it says; "" at the end, or when it says nothing for 30 s.
func (c *child) line() string {
	late := time.AfterFunc(30*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	c.said.Scan()
	return strings.TrimSpace(c.said.Text())
}
