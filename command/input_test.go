package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/selfcheck"
	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
	"github.com/lockbench/lockbench/strategies"
)

func texts(problems []error) []string {
	var all []string
	for _, problem := range problems {
		all = append(all, problem.Error())
	}
	return all
}

func TestFlattenSplitsJoinedErrors(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b\n\n  of two lines"), errors.New("c")
	wrapped := fmt.Errorf("%w because of %w", a, c)
	got := texts(flatten(errors.Join(a, errors.Join(b, wrapped), nil)))
	if diff := cmp.Diff([]string{"a", "b of two lines", "a because of c"}, got); diff != "" {
		t.Error(diff)
	}
	if flatten(nil) != nil {
		t.Error("no error has faults")
	}
}

func TestRunFlagErrorsNameTheFlag(t *testing.T) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	newFlags().register(set)
	makePatient(set)
	free := strings.Fields("strategy file workload redis ca-file image topology work fence counter " +
		"release row threshold session cert key redis-password") // these accept any text
	set.VisitAll(func(flag *pflag.Flag) {
		_ = set.Set(flag.Name, "?")
		err := prefixed(flag.Name, errors.Join(flag.Value.(*patient).problems...))
		if slices.Contains(free, flag.Name) != (err == nil) ||
			err != nil && !strings.HasPrefix(err.Error(), "--"+flag.Name+": ") {
			t.Errorf("--%s ?: %v", flag.Name, err)
		}
	})
}

func TestOrderIsBalancedAndShuffled(t *testing.T) {
	for _, pairs := range []int{1, 2, 7, 12, 100} {
		first := 0
		for _, headFirst := range order(pairs, 1) {
			if headFirst {
				first++
			}
		}
		if first != pairs/2 {
			t.Errorf("the head is first in %d of %d pairs", first, pairs)
		}
	}
	if !slices.Equal(order(100, 1), order(100, 1)) || slices.Equal(order(100, 1), order(100, 2)) {
		t.Error("the order is not the seed's")
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range list {
		names = append(names, entry.Name())
	}
	return names
}

func TestSaveKeepsOldFileOnEncodingError(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.json")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	half := func(w io.Writer, _ *results.Report, _ int, _ bool) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			t.Error(err)
		}
		return errors.New("no more")
	}
	out := output[*results.Report]{format: "json", file: file, write: half}
	err := out.save(&results.Report{}, &app{stdout: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "no more") {
		t.Errorf("error %v", err)
	}
	if content, _ := os.ReadFile(file); string(content) != "old" {
		t.Errorf("the file now holds %q", content)
	}
	if names := entries(t, dir); len(names) != 1 {
		t.Errorf("leftovers: %v", names)
	}
}

// replace must write to a named pipe through a symbolic link, and must not replace the pipe.
func TestReplaceWritesToPipe(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here:", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	if err := writable(link); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() {
		content, err := os.ReadFile(pipe)
		got <- string(content) + errorText(err)
	}()
	if err := replace(link, []byte("through")); err != nil {
		t.Fatal(err)
	}
	if content := <-got; content != "through" {
		t.Errorf("the pipe gave %q", content)
	}
	if stat, err := os.Lstat(pipe); err != nil || stat.Mode()&fs.ModeNamedPipe == 0 {
		t.Errorf("the pipe was replaced: %v %v", stat, err)
	}
}

// A new output file must inherit the group of a setgid directory, even if $TMPDIR is on the same file system.
func TestNewFileInheritsDirectoryGroup(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		groups = append(groups, 65534)
	}
	i := slices.IndexFunc(groups, func(group int) bool { return group != os.Getegid() })
	if i < 0 {
		t.Skip("this user has one group")
	}
	if err := errors.Join(os.Chown(dir, -1, groups[i]), os.Chmod(dir, 0o770|fs.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "report.json")
	for range 2 { // the file does not exist, then it exists
		if err := replace(file, []byte("whole")); err != nil {
			t.Fatal(err)
		}
		stat, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if group := stat.Sys().(*syscall.Stat_t).Gid; int(group) != groups[i] {
			t.Errorf("the file has the group %d, the folder %d", group, groups[i])
		}
	}
}

// A replaced file must keep its mode, whatever the umask is.
func TestReplaceKeepsFileMode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	for _, rights := range []fs.FileMode{0o600, 0o644, 0o666} {
		put(t, file, "old")
		if err := errors.Join(os.Chmod(file, rights), replace(file, []byte("new"))); err != nil {
			t.Fatal(err)
		}
		if stat, err := os.Stat(file); err != nil || stat.Mode() != rights {
			t.Errorf("%v instead of %v, %v", stat.Mode(), rights, err)
		}
	}
}

// The temporary file has a longer name than the output file. If that name is too long for the file system, lockbench
// must reject the output before the run, not after it.
func TestWritableChecksTemporaryName(t *testing.T) {
	dir := t.TempDir()
	for size, fits := range map[int]bool{200: true, 255: false} {
		file := filepath.Join(dir, strings.Repeat("x", size))
		before, after := writable(file), replace(file, nil)
		if (before == nil) != fits || (after == nil) != fits {
			t.Errorf("a name of %d bytes: before %v, after %v", size, before, after)
		}
	}
}

// Two processes write the same output file at the same time. Both must succeed, and the file must be complete.
func TestConcurrentWritesOfOneFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.json")
	content := bytes.Repeat([]byte("x"), 10_000)
	var both errgroup.Group
	for range 2 {
		both.Go(func() error {
			for range 100 {
				if err := errors.Join(writable(file), replace(file, content)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := both.Wait(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("leftovers: %v %v", files, err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// lockbench list must print no ACL command for a strategy that declares no rights, because such a command would take
// all rights from the strategy's user.
func TestUndeclaredRightsPrintNoACL(t *testing.T) {
	printed := func(info strategies.Info) string {
		var b strings.Builder
		rights(func(label string, texts ...string) { fmt.Fprintf(&b, "%s %s\n", label, texts[0]) }, info)
		return b.String()
	}
	info := strategies.Info{Name: "new", Capacity: 1, Nodes: 1}
	if got, want := printed(info), "ACL not declared\n"; got != want {
		t.Errorf("of empty rights it prints %q, want %q", got, want)
	}
	info.Rights.Commands = []string{"incr"}
	if got := printed(info); !strings.Contains(got, "ACL SETUSER") || !strings.Contains(got, "+incr") {
		t.Errorf("of rights it prints %q", got)
	}
}

func TestExitCodes(t *testing.T) {
	fine := results.Run{Strategy: "fine"}
	invalid := results.Run{Strategy: "doubtful", Invalid: results.PlainTexts("its time accounts do not balance")}
	broken := results.Run{Strategy: "broken", Safety: results.Safety{Broken: results.PlainTexts("exclusion")}}
	both := results.Run{Strategy: "both", Safety: broken.Safety, Invalid: invalid.Invalid}
	report := func(runs ...results.Run) *results.Report { return &results.Report{Runs: runs} }
	stopped := func(r *results.Report) *results.Report { r.Interrupted = true; return r }

	unreachable := fmt.Errorf("%w during spin: it is gone", lockbench.ErrUnreachable)
	config := fmt.Errorf("%w: maxclients", lockbench.ErrConfig)
	dialing := fmt.Errorf("%w: %w", lockbench.ErrUnreachable, context.Canceled)

	for _, test := range []struct {
		name      string
		cancelled bool
		report    *results.Report
		err       error
		want      int
	}{
		{"all well", false, report(fine, fine), nil, ExitOK},
		{"nothing to do", false, report(), nil, ExitOK},
		{"invalid", false, report(fine, invalid), nil, ExitInvalid},
		{"broken", false, report(broken, fine), nil, ExitSafety},
		{"broken before invalid", false, report(invalid, both), nil, ExitSafety},
		{"interrupted before broken", true, stopped(report(broken, invalid)), nil, ExitInterrupted},
		{"interrupted after the last run", true, report(fine), nil, ExitOK},
		{"interrupted while connecting", true, nil, dialing, ExitStopped},
		{
			"interrupted in the floors", true, stopped(report()), fmt.Errorf("floors: %w", context.Canceled),
			ExitInterrupted,
		},
		{"unreachable", false, nil, unreachable, ExitUnreachable},
		{"gone, and broken before", false, report(broken), unreachable, ExitUnreachable},
		{"gone after an interrupt", true, stopped(report(fine)), unreachable, ExitUnreachable},
		{"limits too small", false, report(), config, ExitConfig},
		{"something else", false, report(fine), errors.New("disk full"), ExitFailure},
		{"something else, and invalid", false, report(invalid), errors.New("acquire: WRONGTYPE"), ExitInvalid},
		{"something else, and broken", false, report(both), errors.New("acquire: WRONGTYPE"), ExitSafety},
		{"a generator is lost, and fine before", false, report(fine), lockbench.ErrGenerator, ExitInvalid},
		{"a generator is lost, and broken before", false, report(broken), lockbench.ErrGenerator, ExitSafety},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.cancelled {
				cancel()
			}
			err := outcome(ctx, test.report, test.err)
			if got := exitCode(ctx, err); got != test.want {
				t.Errorf("exit code %d, want %d (%v)", got, test.want, err)
			}
			if test.want != ExitOK && err.Error() == "" {
				t.Error("the user is not told why")
			}
		})
	}
}

func TestSelfcheckExitCodes(t *testing.T) {
	check := func(verdicts ...results.Verdict) *selfcheck.Document {
		s := &selfcheck.Document{}
		for _, v := range verdicts {
			s.Checks = append(s.Checks, selfcheck.Check{Name: string(v), Verdict: v})
		}
		return s
	}
	stopped := func(s *selfcheck.Document) *selfcheck.Document { s.Interrupted = true; return s }
	for _, test := range []struct {
		name      string
		cancelled bool
		found     *selfcheck.Document
		err       error
		want      int
	}{
		{"all pass", false, check(selfcheck.Pass, selfcheck.Pass), nil, ExitOK},
		{"nothing refuted", false, check(selfcheck.Pass, selfcheck.Inconclusive), nil, ExitOK},
		{"one failed", false, check(selfcheck.Fail, selfcheck.Inconclusive), nil, ExitInvalid},
		{"one failed, and the server stays", false, check(selfcheck.Fail), errors.New("cannot remove it"), ExitInvalid},
		{"the server stays", false, check(selfcheck.Pass), errors.New("cannot remove it"), ExitFailure},
		{"interrupted", true, stopped(check(selfcheck.Fail)), nil, ExitInterrupted},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if test.cancelled {
			cancel()
		}
		if got := exitCode(ctx, proven(ctx, test.found, test.err)); got != test.want {
			t.Errorf("%s: exit code %d, want %d", test.name, got, test.want)
		}
		cancel()
	}
}

// A slower head is a regression if base and head were recorded alternately. It is not a regression if the head was
// recorded after the base, because the machine may have become slower.
func TestOnlyAlternatingSessionsExitWith110(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		every int // minutes between two sessions of a side
		after int // minutes from the base's first session to the head's first
		want  int
	}{{2, 1, ExitRegression}, {2, -1, ExitRegression}, {1, 100, ExitOK}, {1, -100, ExitOK}} {
		var sides [2]compare.Side
		for of := range sides {
			for i := range 6 {
				at := time.Date(2026, 1, 1, 12, i*test.every+of*test.after, 0, 0, time.UTC)
				run := results.Run{Strategy: "spin", Speed: results.Speed{PerSecond: 800 - float64(400*of+i)}}
				report := &results.Report{
					Started: at, Strategies: []results.Strategy{{Name: "spin"}},
					Runs: []results.Run{run},
				}
				sides[of].Reports = append(sides[of].Reports, results.File{Name: fmt.Sprint(of, i), Report: report})
			}
		}
		c, err := compare.Unpaired(sides[0], sides[1], compare.DefaultRules())
		if err != nil {
			t.Fatal(err)
		}
		if got := exitCode(t.Context(), judgement(c)); got != test.want {
			t.Errorf("every %d minutes, the head after %d: exit code %d, want %d: %s",
				test.every, test.after, got, test.want, c.Headline())
		}
	}
}

func TestAllReasonsOfInvalidRunAreReported(t *testing.T) {
	t.Parallel()
	run := results.Run{Strategy: "spin", Invalid: results.PlainTexts("it had errors", "it stood still")}
	err := judge(&results.Report{Runs: []results.Run{run}})
	if err == nil || !strings.Contains(err.Error(), "spin: it had errors; it stood still") {
		t.Errorf("error %v", err)
	}
}

func TestErrorsTakeAtMostTwentyLines(t *testing.T) {
	var said strings.Builder
	a := &app{stderr: &locked{to: &said}}
	problems := []error{errors.New("NOPERM no rights")}
	for i := range 50 {
		problems = append(problems, fmt.Errorf("problem %d", i))
	}
	a.complain(errors.Join(problems...))
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if len(lines) != 20 || lines[18] != "lockbench: and 33 lines more" ||
		!strings.HasPrefix(lines[19], "lockbench: next: ") {
		t.Errorf("%d lines:\n%s", len(lines), &said)
	}
	said.Reset()
	a.complain(errors.Join(problems[1:21]...))
	if got := strings.Count(said.String(), "\n"); got != 20 || strings.Contains(said.String(), "more") {
		t.Errorf("twenty errors are %d lines:\n%s", got, &said)
	}
}

// The advice to build lockbench without the tag redisonly may follow only an error about a part that the tag leaves
// out, and only if lockbench was built with the tag.
func TestBuildTagAdviceForOmittedParts(t *testing.T) {
	for line, missing := range map[string]bool{
		`--strategy: unknown strategy "etcd"`: true, `unknown strategy "gated:rueidislock"`: true,
		"--redis must be auto, container, process": true, launch.ErrNoEngine.Error(): true,
		"--metrics otlp: this program is built without OTLP": true,
		`--strategy: unknown strategy "pubsubb"`:             false, "--ttl must be positive": false,
	} {
		for tags, part := range map[string]bool{"": false, "netgo": false, "netgo,redisonly": true} {
			if said := leftOut(tags, line); (said != "") != (missing && part) {
				t.Errorf("built with %q, %q is followed by %q", tags, line, said)
			}
		}
	}
}

func TestStatusLineFitsTheTerminal(t *testing.T) {
	now := lockbench.Progress{
		Run: 2, Runs: 8, Strategy: "pubsub", Round: 1, Phase: "measure",
		Last: &results.Slice{Seconds: 1.25, Acquisitions: 1000, WaitP99: &results.Bound{NS: 41_000_000}},
	}
	want := "[2/8] pubsub round 1 · 800/s · p99 41.0 ms · 23s left"
	if got := statusLine(now, 23*time.Second, 80); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := statusLine(now, 23*time.Second, 26), "[2/8] pubsub round 1 · 80"; got != want {
		t.Errorf("at 26 columns %q, want %q", got, want)
	}
	now.Last = nil
	if got, want := statusLine(now, 0, 80), "[2/8] pubsub round 1 · measure"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Kubernetes sets variables in each container for every service of the namespace. The variables of a service called
// lockbench begin with LOCKBENCH_, and lockbench must not mistake them for misspelt flags.
func TestKubernetesVariablesAreIgnored(t *testing.T) {
	for _, service := range []string{"LOCKBENCH", "LOCKBENCH_REDIS"} {
		t.Setenv(service+"_PORT", "tcp://10.0.0.1:6379")
		for _, name := range []string{
			"SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_REDIS", "PORT_6379_TCP", "PORT_6379_TCP_ADDR", "PORT_6379_TCP_PORT",
			"PORT_6379_TCP_PROTO",
		} {
			t.Setenv(service+"_"+name, "10.0.0.1")
		}
	}
	if code, _, stderr := said(t, "--dry-run", "-s", "local"); code != ExitOK {
		t.Errorf("exit code %d, said: %s", code, stderr)
	}
}
