package servers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/poll"
)

// helperEnv makes the test binary open the address in this variable, print the server's address and wait until the test
// kills it, like a lockbench that is killed.
const (
	helperEnv = "LOCKBENCH_TEST_OPEN"
	victimID  = "deadbeef" // of its run
)

func TestHelperOpen(t *testing.T) {
	address := os.Getenv(helperEnv)
	if address == "" {
		t.Skip("it only runs as another test's subprocess")
	}
	s, err := Open(t.Context(), Options{Address: address, RunID: victimID})
	must(t, err)
	must(t, s.nodes[0].observer.Set(t.Context(), "lockbench:{"+victimID+":1:0}:counter:floor", 1, 0).Err())
	fmt.Printf("\n%+v\nopened %s\n", s.Describe(), s.Describe().Address)
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
	runtime.KeepAlive(s)                 // otherwise the garbage collector closes its connections
}

// victim is a process that opens a server like lockbench and that the test kills. addr is the server's address.
type victim struct {
	cmd  *exec.Cmd
	addr string
}

func startVictim(t *testing.T, address string, environment ...string) *victim {
	t.Helper()
	v, said := tryVictim(t, address, environment...)
	if v.addr == "" {
		t.Fatalf("the subprocess opened nothing: %s", said)
	}
	return v
}

// tryVictim starts a victim that opens address, with additions to its environment. It also returns the victim's output,
// which contains the error if the victim has opened no server.
func tryVictim(t *testing.T, address string, environment ...string) (*victim, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperOpen$")
	cmd.Env = append(append(os.Environ(), helperEnv+"="+address), environment...)
	_, err := cmd.StdinPipe()
	must(t, err)
	output, err := cmd.StdoutPipe()
	must(t, err, cmd.Start())
	v := &victim{cmd: cmd}
	t.Cleanup(v.kill)
	lines := bufio.NewScanner(output)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		if addr, ok := strings.CutPrefix(lines.Text(), "opened "); ok {
			v.addr = addr
			break
		}
	}
	return v, strings.Join(said, "\n")
}

func (v *victim) kill() {
	_ = v.cmd.Process.Kill() // it may have been killed before
	_ = v.cmd.Wait()
}

// sweepTwice runs two sweeps at the same time and returns the sum of what they found.
func sweepTwice(ctx context.Context) launch.Swept {
	var both [2]launch.Swept
	var all sync.WaitGroup
	for i := range both {
		all.Go(func() { both[i] = launch.SweepMachine(ctx) })
	}
	all.Wait()
	both[0].Add(both[1])
	return both[0]
}

// A killed run leaves keys on a user's server. The next run must warn about them and keep them. A sweep must delete
// these keys and no others.
func TestOpenReportsLeftoverKeys(t *testing.T) {
	p, ctx := process(t), t.Context()
	s := open(t, Options{Address: p.Addr(), RunID: "a11fe000"})
	client := s.nodes[0].observer
	keys := []string{
		"lockbench:{deadbeef:1:0}", "lockbench:{deadbeef:12:34}:counter", // of a dead run
		"lockbench:{a11fe000:1:0}", "lockbench:{a11fe000", "mylockbench", "lockbench:{}:", // not of one
		"shop:lockbench:{deadbeef:1:0}", "lockbench:{deadbeef:1:0}:items", "lockbench:{team:1:0}", // not ours
		"lockbench:{deadbeef:1}", "lockbench:{12345678:1:0}", "lockbench:{DEADBEEF:1:0}", "app:{deadbeef:1:0}",
	}
	for _, key := range keys {
		must(t, client.Set(ctx, key, "", 0).Err())
	}
	said := func() (warnings []string) {
		warn := func(w string) { warnings = append(warnings, w) }
		s, err := Open(ctx, Options{Address: p.Addr(), RunID: "ab000000", Warn: warn})
		must(t, err, s.Close(ctx))
		return warnings
	}
	sweep := func() (swept store.Swept) {
		open(t, Options{Address: p.Addr(), RunID: "c1ea0000"}).Sweep(ctx, &swept)
		return swept
	}
	v := startVictim(t, "redis://"+p.Addr())
	if warnings, swept := said(), sweep(); len(warnings) > 0 || swept.Found != 0 {
		t.Errorf("of a living run's keys it says %q, and sweeps %+v", warnings, swept)
	}
	v.kill()
	var warnings []string
	poll.Until(t, "the leftovers are reported", func() bool { warnings = said(); return len(warnings) > 0 })
	want := "killed runs (deadbeef) left 3 keys on " + p.Addr() + ": remove them with lockbench clean --redis URL"
	if !slices.Equal(warnings, []string{want}) {
		t.Errorf("it says %q, want %q", warnings, want)
	}
	if n := client.DBSize(ctx).Val(); n != int64(len(keys)+1) {
		t.Errorf("there are %d keys", n)
	}
	if swept := sweep(); swept.Found != 3 || !slices.Equal(swept.Runs, []string{victimID}) {
		t.Errorf("swept %+v", swept)
	}
	left, err := scan(ctx, client, "*")
	if want := slices.Sorted(slices.Values(keys[2:])); err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %v, %v; want %v", left, err, want)
	}
}

func TestNoSweepOfKeysWithoutClientList(t *testing.T) {
	p := process(t, "--user", "little", "on", "nopass", "~*", "&*", "+@all", "-client|list")
	address := "redis://little:any@" + p.Addr()
	client := open(t, Options{Address: address}).nodes[0].observer
	must(t, client.Set(t.Context(), "lockbench:{deadbeef:1:0}", "", 0).Err())
	var swept store.Swept
	open(t, Options{Address: address, RunID: "c1ea0000"}).Sweep(t.Context(), &swept)
	if swept.Found != 0 || len(swept.Skipped) == 0 {
		t.Errorf("sweep: %+v: it must say what it left alone", swept)
	}
	if n := client.DBSize(t.Context()).Val(); n != 1 {
		t.Error("keys of an unknown owner were removed")
	}
}
