package command_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/poll"
)

// differences are the lines that one of two lists has and the other has not.
func differences(before, after []string) []string {
	var all []string
	for _, line := range before {
		if !slices.Contains(after, line) {
			all = append(all, "gone: "+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			all = append(all, "new: "+line)
		}
	}
	return all
}

// has says whether there is a line with each of the parts.
func has(lines []string, parts ...string) bool {
	for _, part := range parts {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, part) }) {
			return false
		}
	}
	return true
}

// A user's server has after a run what it had before, however the run ends. Of a run that was
// killed clean removes the rest.
func TestAUsersServerStaysAsItWas(t *testing.T) {
	for _, name := range extent.Chosen([]string{"postgres", "etcd", "zookeeper"}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user := usersServers[name](t)
			before := user.all()
			if has(before, user.held...) || has(before, user.alive) {
				t.Fatalf("a lockbench is there already: %q", before)
			}
			same := func(after string) {
				t.Helper()
				var found []string
				for end := time.Now().Add(drive.Bound); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
					if found = differences(before, user.all()); len(found) == 0 {
						return
					}
				}
				t.Errorf("after %s it is not what it was:\n%s", after, strings.Join(found, "\n"))
			}
			measure := func(flags ...string) *process {
				return start(t, "lockbench", append(flags, "-u", user.url, "-s", user.strategies, "--work", "counter", "-c", "4", "--instances", "2", "-w", "0s", "--no-baselines")...)
			}
			// amid is a run that has begun. The server keeps a killed one's sessions for the TTL.
			amid := func() *process {
				t.Helper()
				p := measure("-d", "40s", "--ttl", "5s")
				p.await("[1/")
				poll.Until(t, "a client has had the lock", func() bool { return has(user.all(), user.held...) })
				return p
			}

			whole := measure("-d", "300ms")
			if code := whole.code(); code != "0" && code != "112" { // the machine may be too busy to measure on
				t.Errorf("a run ended with %s:\n%s", code, &whole.said)
			}
			same("a run")

			interrupted := amid()
			interrupted.signal(syscall.SIGINT)
			if code := interrupted.code(); code != "105" {
				t.Errorf("a run that was interrupted ended with %s:\n%s", code, &interrupted.said)
			}
			same("an interrupt")

			code, said, wrong := run(t, "doctor", "-u", user.url)
			if code != command.ExitOK || strings.Contains(said, "trouble") {
				t.Errorf("doctor ended with %d:\n%s%s", code, said, wrong)
			}
			for _, line := range []string{"\nserver ", "\nrights ", "\nlimits ", "\ncounters ", "\nmachine ", "strategies could acquire and release"} {
				if !strings.Contains(said, line) || !strings.HasPrefix(said, "reachable ") {
					t.Errorf("doctor says nothing of %q:\n%s", line, said)
				}
			}
			same("doctor")

			killed := amid()
			// What a lockbench that lives uses is left alone.
			if code, said, wrong := run(t, "clean", "-u", user.url); code != command.ExitOK || strings.Contains(said, "of dead runs") {
				t.Errorf("beside a run, clean ended with %d: %s%s", code, said, wrong)
			}
			killed.signal(os.Kill)
			killed.code()
			poll.Until(t, "the server knows that it is dead", func() bool { return !has(user.all(), user.alive) })
			if left := differences(before, user.all()); !has(left, "lockbench") {
				t.Fatalf("nothing was left to be removed: %q", left)
			}
			if code, said, wrong := run(t, "clean", "-u", user.url); code != command.ExitOK || !strings.Contains(said, "of dead runs") {
				t.Errorf("clean ended with %d: %s%s", code, said, wrong)
			}
			same("clean")
			if code, said, wrong := run(t, "clean", "-u", user.url); code != command.ExitOK || strings.Contains(said, "of dead runs") {
				t.Errorf("a second time clean ended with %d: %s%s", code, said, wrong)
			}

			for _, subcommand := range []string{"clean", "doctor"} {
				if code, said, wrong := run(t, subcommand, "-u", user.nothing); code != command.ExitUnreachable || !strings.Contains(wrong, "127.0.0.1:1") {
					t.Errorf("where nothing listens %s ended with %d: %s%s", subcommand, code, said, wrong)
				}
			}

			litter := user.litter()
			if found := differences(before, user.all()); len(found) != 1 || !strings.Contains(found[0], litter) {
				t.Errorf("a leftover that was planted is not found: %q", found)
			}
		})
	}
}
