package command_test

import (
	"fmt"
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
	missing := func(what string, from, in []string) {
		there := map[string]bool{}
		for _, line := range in {
			there[line] = true
		}
		for _, line := range from {
			if !there[line] {
				all = append(all, what+line)
			}
		}
	}
	missing("gone: ", before, after)
	missing("new: ", after, before)
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

// count says how many lines have a part.
func count(lines []string, part string) (n int) {
	for _, line := range lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// A user's server has after a run what it had before, however the run ends. What a run that was killed left
// is told by the next one, and removed by clean.
func TestAUsersServerStaysAsItWas(t *testing.T) {
	for _, name := range append([]string{"redis"}, extent.Chosen([]string{"postgres", "etcd", "zookeeper"})...) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user := usersServers[name](t)
			before := user.all()
			since := func() []string { return differences(before, user.all()) }
			same := func(after string) {
				t.Helper()
				var found []string
				for end := time.Now().Add(drive.Bound); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
					if found = since(); len(found) == 0 {
						return
					}
				}
				t.Fatalf("after %s it is not what it was:\n%s", after, strings.Join(found[:min(len(found), 20)], "\n"))
			}
			flags := func(strategies string, flags ...string) []string {
				return append(flags, "-u", user.url, "-s", strategies, "--work", "counter", "-c", "4", "--instances",
					"2",
					"-w", "0s", "--no-baselines")
			}
			// amid is a run that has begun.
			amid := func(strategies string) *process {
				t.Helper()
				had := count(since(), user.held)
				p := start(t, "lockbench", flags(strategies, "-d", "40s", "--ttl", user.ttl)...)
				p.await("[1/")
				poll.Until(t, "a client has had the lock", func() bool { return count(since(), user.held) > had })
				return p
			}

			for _, more := range append([][]string{nil, {"--session", usersSession}}, user.faults...) {
				whole := start(t, "lockbench",
					flags(strings.Join(user.strategies, ","), append(more, "-d", "300ms")...)...)
				if code := whole.code(); code != "0" && code != "112" { // the machine may be too busy to measure on
					t.Errorf("a run with %q ended with %s:\n%s", more, code, &whole.said)
				}
				same(fmt.Sprintf("a run with %q", more))
			}

			interrupted := amid(user.strategies[0])
			interrupted.signal(syscall.SIGINT)
			if code := interrupted.code(); code != "105" {
				t.Errorf("a run that was interrupted ended with %s:\n%s", code, &interrupted.said)
			}
			same("an interrupt")

			code, said, wrong := run(t, "doctor", "-u", user.url)
			if code != command.ExitOK || strings.Contains(said, "trouble") {
				t.Errorf("doctor ended with %d:\n%s%s", code, said, wrong)
			}
			for _, line := range user.doctor {
				if !strings.Contains(said, line) || !strings.HasPrefix(said, "reachable ") {
					t.Errorf("doctor says nothing of %q:\n%s", line, said)
				}
			}
			same("doctor")

			for _, strategy := range user.strategies {
				killed := amid(strategy)
				// What a lockbench that lives uses is left alone.
				lives := since()
				code, said, wrong := run(t, "clean", "-u", user.url)
				if code != command.ExitOK || strings.Contains(said, "of dead runs") {
					t.Errorf("beside a run, clean ended with %d: %s%s", code, said, wrong)
				}
				if count(since(), user.held) < count(lives, user.held) {
					t.Errorf("clean removed what a run uses: %q", lives)
				}
				killed.signal(os.Kill)
				killed.code()
				poll.Until(t, "the server knows that it is dead", func() bool { return !has(since(), user.alive) })
				left := since()
				if !has(left, "lockbench") {
					t.Fatalf("nothing was left to be removed: %q", left)
				}
				if code, said, wrong := run(t, flags(strategy, "-q", "-n", "10")...); !strings.Contains(said,
					"killed runs (") {
					t.Errorf("the next run ended with %d and says nothing of what is left: %s%s", code, said, wrong)
				}
				if now := since(); count(now, user.held) != count(left, user.held) {
					t.Errorf("the next run changed what is left:\n%s", strings.Join(differences(left, now), "\n"))
				}
				code, said, wrong = run(t, "clean", "-u", user.url)
				if code != command.ExitOK || !strings.Contains(said, "of dead runs") {
					t.Errorf("clean ended with %d: %s%s", code, said, wrong)
				}
				same("clean")
			}
			code, said, wrong = run(t, "clean", "-u", user.url)
			if code != command.ExitOK || strings.Contains(said, "of dead runs") {
				t.Errorf("a second time clean ended with %d: %s%s", code, said, wrong)
			}

			for _, subcommand := range []string{"clean", "doctor"} {
				if code, said, wrong := run(t, subcommand, "-u", user.nothing); code != command.ExitUnreachable ||
					!strings.Contains(wrong, "127.0.0.1:1") {
					t.Errorf("where nothing listens %s ended with %d: %s%s", subcommand, code, said, wrong)
				}
			}

			litter := user.litter()
			if found := since(); len(found) != 1 || !strings.Contains(found[0], litter) {
				t.Errorf("a leftover that was planted is not found: %q", found)
			}
		})
	}
}
