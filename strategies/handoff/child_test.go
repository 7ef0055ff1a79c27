//go:build unix

package handoff_test

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

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// childVariable has this test's binary be a process that waits for a lock.
const childVariable = "LOCKBENCH_TEST_WAITERS"

// childTask is what a child has to do.
type childTask struct {
	Strategy, Addr string
	TTL            time.Duration
	Waiters        int
	Holds          bool // until the lease is lost
}

// begun is what a child's waiter says first.
const begun = "waiting"

// waitAsChild has each waiter say that it begins, acquire "key", write its token and until when the lease
// is valid, and release. It ends early with standard input.
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
			fmt.Println(begun)
			lease, err := locker.Acquire(ctx, "key")
			if err == nil {
				held := lease.(*handoff.Lease)
				fmt.Println(held.FencingToken(), held.ValidUntil().UnixNano())
				if task.Holds {
					<-held.Lost()
				}
				err = held.Release(ctx)
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

// startChild starts one, and returns when its waiters begin.
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
	for range task.Waiters {
		if line := c.line(); line != begun {
			t.Fatalf("the child said %q", line)
		}
	}
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

// granted is the next lease that one of its waiters says it has.
func (c *child) granted() (token int64, until time.Time) {
	c.t.Helper()
	var nanoseconds int64
	if said := c.line(); said != "" {
		if _, err := fmt.Sscan(said, &token, &nanoseconds); err != nil {
			c.t.Errorf("one of the child's waiters said %q", said)
		}
	}
	return token, time.Unix(0, nanoseconds)
}

// stop stops it, and returns when it has stopped.
func (c *child) stop() {
	c.t.Helper()
	c.signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		c.t.Fatalf("it does not stop: %v, %v", status, err)
	}
}

// waitersEach is how many wait in a child.
const waitersEach = 5

// standBehind has one wait behind a child's waiters for a lease that would last for an hour. Somebody else
// listens to all that is published.
func standBehind(t *testing.T, variant string, ttl time.Duration) (c *child, q *queue, lease *holding) {
	t.Helper()
	server := redistest.Start(t)
	q = newQueue(t, server)
	everything := q.server.PSubscribe(t.Context(), "*")
	t.Cleanup(func() { _ = everything.Close() })
	if _, err := everything.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease = acquire(t, trial.Start(t, server, variant, time.Hour))
	c = startChild(t, childTask{variant, server.Addr, ttl, waitersEach, false})
	places := int64(1)
	if variant == "handoff:linger=0s" {
		places = waitersEach
	}
	poll.Until(t, "the child's waiters are queued", func() bool { return q.length() == places })
	q.join("behind", trial.Start(t, server, variant, ttl))
	return c, q, lease
}

// Waiters whose process was killed are passed over, and cost no TTL, also when somebody else listens to all
// that is published.
func TestKilledWaitersDelayNobody(t *testing.T) {
	each(t, every, func(t *testing.T, variant string) {
		c, q, lease := standBehind(t, variant, time.Hour)
		c.kill()
		trial.Release(t, q.turns(lease, "behind"))
	})
}

// Waiters of a process that is stopped cost one TTL in all. When the process goes on it
// does not take the grant that came too late for a lease, and all its waiters are served.
func TestStoppedWaitersCostOneTTL(t *testing.T) {
	each(t, every, func(t *testing.T, variant string) {
		trial.Calm(t, func(times int) string {
			ttl := time.Duration(times) * 1500 * time.Millisecond
			c, q, lease := standBehind(t, variant, ttl)
			defer c.kill()
			c.stop()
			released := time.Now()
			next := q.turns(lease, "behind")
			took := time.Since(released)
			trial.Release(t, next)
			c.signal(syscall.SIGCONT)
			for range waitersEach {
				if token, _ := c.granted(); token <= next.FencingToken() {
					t.Errorf("a waiter of the child has token %d; the grant that came too late had less than %d",
						token, next.FencingToken())
				}
			}
			if took > 2*ttl-100*time.Millisecond {
				return fmt.Sprintf("a stopped process cost %v, and the TTL is %v", took, ttl)
			}
			return ""
		})
	})
}

// A holder whose process is killed, or stopped, keeps the lock for as long as its lease is valid, and for no
// TTL more. One that goes on is told, and its release does not take the lock from the next.
func TestKilledOrStoppedHolderCostsOneTTL(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "stopped"} {
		t.Run(how, func(t *testing.T) {
			each(t, every, func(t *testing.T, variant string) {
				trial.Calm(t, func(times int) string { return endsHolder(t, variant, how, times) })
			})
		})
	}
}

func endsHolder(t *testing.T, variant, how string, times int) (spoilt string) {
	t.Helper()
	ttl := time.Duration(times) * 1500 * time.Millisecond
	server := redistest.Start(t)
	p, q := trial.Start(t, server, variant, time.Hour), newQueue(t, server)
	c := startChild(t, childTask{variant, server.Addr, ttl, 1, true})
	defer c.kill()
	token, until := c.granted()
	if how == "killed" {
		c.kill()
	} else {
		c.stop()
	}
	q.come("next", p)
	next := q.next("next")
	now := time.Now()
	if now.Before(until) || next.FencingToken() <= token {
		t.Errorf("%v before the lease was over another got token %d after %d",
			until.Sub(now), next.FencingToken(), token)
	}
	if how == "stopped" {
		c.signal(syscall.SIGCONT)
		if said := c.line(); !strings.Contains(said, strategies.ErrNotHeld.Error()) {
			t.Errorf("a holder that was stopped until its lease was over said %q", said)
		}
		isHeld(t, p)
	}
	trial.Release(t, next)
	q.nothingLeft(p)
	if late := now.Sub(until); late > ttl {
		return fmt.Sprintf("the lock was free %v after the lease was over", late)
	}
	return ""
}
