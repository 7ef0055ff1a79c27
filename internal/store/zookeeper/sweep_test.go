package zookeeper

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// victimEnv makes the test binary play a lockbench that is about to be killed: it opens the
// address in the variable, leaves a key there, says where that is and waits.
const victimEnv = "LOCKBENCH_TEST_OPEN"

func TestHelperOpen(t *testing.T) {
	address := os.Getenv(victimEnv)
	if address == "" {
		t.Skip("it only runs as another test's subprocess")
	}
	s, err := opened(t.Context(), "deadbeef", store.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	session, err := s.watching.live(t.Context())
	if err == nil {
		_, err = session.Create(t.Context(), s.node.Path("lockbench:{deadbeef:1:0}"), nil, zk.FlagPersistent)
	}
	if err == nil {
		_, err = session.Create(t.Context(), s.node.Path("lockbench:{deadbeef:1:0}")+"/place", nil, zk.FlagEphemeral)
	}
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nopened %s\n", s.Describe().Address)
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
	runtime.KeepAlive(s)
}

// victim is such a subprocess. It returns the server's address, and what kills it.
func victim(t *testing.T, address string) (addr string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperOpen$")
	cmd.Env = append(os.Environ(), victimEnv+"="+address)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill() // it may have been killed before
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	var said []string
	for lines := bufio.NewScanner(output); lines.Scan(); {
		said = append(said, lines.Text())
		if addr, ok := strings.CutPrefix(lines.Text(), "opened "); ok {
			return addr, kill
		}
	}
	t.Fatalf("the subprocess opened nothing: %q", said)
	return "", nil
}

// The server of a lockbench that was killed is ended by the next one.
func TestSweepOfServers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // where no other test's lockbench sweeps
	addr, kill := victim(t, "process")
	first := open(t, store.Options{})
	if _, err := look(t.Context(), dialer, addr); err != nil {
		t.Fatalf("the server of a living lockbench was swept: %v", err)
	}
	kill()
	if _, err := look(t.Context(), dialer, addr); err != nil {
		t.Fatalf("the server died with its lockbench, so that there is nothing to sweep: %v", err)
	}
	open(t, store.Options{})
	if _, err := look(t.Context(), dialer, addr); err == nil {
		t.Error("the dead lockbench's server still answers")
	}
	if err := first.Ping(t.Context()); err != nil {
		t.Errorf("a server of this living process was swept with it: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "lockbench-server-*")); len(left) != 2 {
		t.Errorf("there are %q", left)
	}
}

// The keys of a lockbench that was killed are told by the next one, once the server knows that it is dead, and
// removed by a sweep, and nobody else's.
func TestSweepOfKeys(t *testing.T) {
	t.Parallel()
	own := open(t, store.Options{})
	session, err := gozk.Node{Servers: own.node.Servers}.Connect(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	alive := open(t, users(own))
	theirs := []string{
		"/lockbench:{" + alive.runID + ":1:0}", "/lockbench:{deadbeef", "/lockbench:{team:1:0}",
		"/shop:lockbench:{deadbeef:1:0}",
		"/lockbench:{deadbeef:1:0}:items", "/mylockbench", "/lockbench:{}:",
	}
	for _, path := range theirs {
		if _, err := session.Create(t.Context(), path, nil, zk.FlagPersistent); err != nil {
			t.Fatal(err)
		}
	}
	addr := own.Describe().Address
	_, kill := victim(t, "zk://"+addr)
	there := func(path string) bool {
		_, err := session.Stat(t.Context(), path)
		return err == nil
	}
	var warned []string
	next := func() {
		with := users(own)
		warned, with.Warn = nil, func(warning string) { warned = append(warned, warning) }
		s, err := opened(t.Context(), store.NewRunID(), with)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	next()
	if !there("/lockbench:{deadbeef:1:0}") {
		t.Fatal("the key of a living lockbench was removed")
	}
	if len(warned) > 0 {
		t.Errorf("of a living lockbench it says %q", warned)
	}
	kill()
	poll.Until(t, "the keys of the dead are told", func() bool { next(); return len(warned) > 0 })
	if !strings.Contains(warned[0], "killed runs (deadbeef) left 1 key on") || !there("/lockbench:{deadbeef:1:0}") {
		t.Errorf("told is %q", warned)
	}
	swept, err := (Store{}).Sweep(t.Context(), store.NewRunID(), users(own))
	if err != nil || there("/lockbench:{deadbeef:1:0}") {
		t.Errorf("it was not removed: %+v, %v", swept, err)
	}
	for _, path := range theirs {
		if !there(path) {
			t.Errorf("%s was removed with them", path)
		}
	}
}
