package observe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// executed runs a program of programs_test.go as the command of --exec, and returns what Run observed.
func executed(t *testing.T, name string) *Document {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var said, problems bytes.Buffer
	d, err := Run(ctx, Running{
		Line:   fmt.Sprintf("exec '%s' program '%s'", os.Args[0], name),
		Stdout: &said, Stderr: &problems,
	}, Options{Top: 5})
	if err != nil || d.Command.Code != 0 || d.Cut || said.String() != name+" ended\n" {
		t.Fatalf("%s: %v, %+v, it said %q %s", name, err, d, said.String(), problems.String())
	}
	return d
}

// faultsOf returns the faults in the findings, sorted, and the names of the locks that have these faults.
func faultsOf(d *Document) (found, about []string) {
	for _, f := range d.Findings {
		if f.Fault != "" {
			found, about = append(found, f.Fault), append(about, f.About)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), slices.Compact(about)
}

// Each planted fault must cause its finding and no other finding.
func TestPlantedCommandFaultsAreFound(t *testing.T) {
	t.Parallel()
	for name, p := range planted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := executed(t, name)
			found, about := faultsOf(d)
			if !slices.Equal(found, p.faults) || !slices.Equal(about, []string{p.key}) {
				t.Errorf("found %q of %q, want %q of %s; %+v", found, about, p.faults, p.key, d.All.Counts)
			}
			var crossed []string
			for _, fault := range p.faults {
				crossed = append(crossed, fault+"==0")
			}
			thresholds, err := ParseThresholds(crossed)
			if err != nil {
				t.Fatal(err)
			}
			if d.Judge(thresholds); len(d.Crossed()) != len(crossed) {
				t.Errorf("of %q are crossed: %v", crossed, d.Crossed())
			}
			t.Logf("%-40s %v", name, found)
		})
	}
}

// Correct locks and caches must cause no finding about a fault.
func TestCorrectCommandsCauseNoFindings(t *testing.T) {
	t.Parallel()
	names := slices.Collect(maps.Keys(good))
	for _, strategy := range []string{
		"spin", "redsync", "redislock", "pubsub", "fair", "fenced", "redisson-spin", "blpop", "handoff", "cohort",
	} {
		names = append(names, "lock "+strategy)
	}
	thresholds, err := ParseThresholds([]string{
		"without_ttl==0", "without_nx==0", "unsafe_releases==0", "others_deleted==0", "shared_value==0",
		"late_releases==0", "ttl_apart==0", "renewals_stopped==0", "nameless==0", "expired==0", "overwritten==0",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := executed(t, name)
			if found, about := faultsOf(d); len(found) > 0 {
				t.Errorf("found %q of %q: %+v", found, about, d.All.Counts)
			}
			d.Judge(thresholds)
			locks, cache := len(d.Locks), strings.HasPrefix(name, "cache")
			if cache != (locks == 0) || cache != (d.Unjudged() != "") {
				t.Errorf("%d locks, and %d keys of caches; %s", locks, d.Caches.Keys, d.Unjudged())
			}
			if crossed := len(d.Crossed()); cache && crossed != len(thresholds) || !cache && crossed > 0 {
				t.Errorf("crossed %v", d.Crossed()) // without a lock, no threshold passes
			}
			t.Logf("%-30s %d commands, %d leases", name, d.Capture.Commands, d.All.Acquisitions)
		})
	}
}

// Neither the descendants of a command nor its Redis may keep running, whether the command succeeds, fails or is
// interrupted.
func TestCommandLeavesNoProcesses(t *testing.T) {
	t.Parallel()
	const stubborn = `trap "" TERM; `
	for _, test := range []struct {
		name, line string
		interrupt  bool
		code       int
	}{
		{"it ends by itself", "sleep 600 & setsid sleep 600 & %s exit 3", false, 3},
		{"it is interrupted", "setsid sleep 600 & %s exec sleep 600", true, -1},
		{"it ignores SIGTERM", stubborn + "sleep 600 & setsid sleep 600 & %s while :; do sleep 600; done", true, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			mark := "MARK_OF_TEST=" + strconv.FormatInt(time.Now().UnixNano(), 36)
			ready := filepath.Join(t.TempDir(), "ready")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.interrupt {
				go func() { // ends when the file exists
					for _, err := os.Stat(ready); err != nil && ctx.Err() == nil; _, err = os.Stat(ready) {
						time.Sleep(time.Millisecond)
					}
					cancel()
				}()
			}
			touch := fmt.Sprintf("echo $REDIS_URL > '%s.new'; mv '%[1]s.new' '%[1]s';", ready)
			d, err := Run(ctx, Running{Line: "export " + mark + "; " + fmt.Sprintf(test.line, touch)}, Options{Top: 1})
			if err != nil {
				t.Fatal(err)
			}
			if d.Command.Code != test.code || d.Interrupted != test.interrupt {
				t.Errorf("it ended with %+v, interrupted %v", d.Command, d.Interrupted)
			}
			url, err := os.ReadFile(ready)
			if err != nil {
				t.Fatal(err)
			}
			_, port, _ := strings.Cut(strings.TrimSpace(string(url)), "//127.0.0.1:")
			for _, text := range []string{mark, "*:" + port, "127.0.0.1:" + port} {
				if left := processesWith(t, text); len(left) > 0 {
					t.Errorf("processes with %s are left: %v", text, left)
				}
			}
		})
	}
}

// processesWith returns the processes whose environment or arguments contain text.
func processesWith(t *testing.T, text string) (all []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		t.Skip("there is no /proc")
	}
	for _, dir := range dirs {
		for _, file := range []string{"environ", "cmdline"} {
			content, err := os.ReadFile(filepath.Join(dir, file))
			pid, _ := strconv.Atoi(filepath.Base(dir))
			if err == nil && pid != syscall.Getpid() && bytes.Contains(content, []byte(text)) {
				all = append(all, dir)
			}
		}
	}
	return all
}

// If a command sends nothing to its Redis, each threshold must count as crossed. A command that sh does not find must
// cause an error.
func TestCommandWithoutTraffic(t *testing.T) {
	t.Parallel()
	d, err := Run(t.Context(), Running{Line: "true"}, Options{Top: 1})
	if err != nil {
		t.Fatal(err)
	}
	thresholds, err := ParseThresholds([]string{"unsafe_releases==0"})
	if err != nil {
		t.Fatal(err)
	}
	if d.Judge(thresholds); d.Capture.Commands != 0 || len(d.Crossed()) != 1 {
		t.Errorf("%d commands, judged %v", d.Capture.Commands, d.Thresholds)
	}
	if _, err := Run(t.Context(), Running{Line: "no-such-command-of-lockbench"}, Options{Top: 1}); !errors.Is(err,
		ErrNoCommand) {
		t.Errorf("a command that does not exist: %v", err)
	}
}
