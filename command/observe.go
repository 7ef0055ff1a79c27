package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/apps/observe"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/untrusted"
)

// observed holds the values of observe's flags.
type observed struct {
	options    observe.Options
	live       observe.Live
	access     lockbench.StoreOptions // password and certificates for the server of a URL
	exec       string
	thresholds []string
}

func (a *app) observe() *cobra.Command {
	var f observed
	out := applicationOutputs(map[string]writer[*observe.Document]{
		"html":     plain(document.WriteHTML[*observe.Document]),
		"markdown": plain(document.WriteMarkdown[*observe.Document]),
		"trace":    plain(func(w io.Writer, d *observe.Document) error { return d.WriteTrace(w) }),
		"workload": plain(func(w io.Writer, d *observe.Document) error { return d.WriteWorkload(w) }),
	})
	cmd := &cobra.Command{
		Use:   "observe [FILE...|-|URL]",
		Short: "Show a service's lock contention from MONITOR",
		Long: "Read the output of redis-cli monitor, from a file or standard input, and print for each lock how\n" +
			"often clients acquire it, how many tries an acquisition takes, how long clients hold the lock and\n" +
			"wait for it, and what is unsafe: leases without a TTL, leases that expire, deletes of another\n" +
			"client's lease. observe knows the commands of the common libraries. It hashes values as it reads\n" +
			"them; --hash-keys hides the keys, too. MONITOR costs a server up to half of its throughput, so\n" +
			"capture only for seconds. With several files, one for each node of a Redlock, observe joins the\n" +
			"leases by their values. With the URL of one node, observe runs MONITOR on that node for the time\n" +
			"of --for. It stops early if the server buffers 32 MB of output for it. With --exec, observe starts\n" +
			"a Redis and judges the locks of a command that uses it.",
		Example: "  redis-cli monitor | head -n 200000 > capture\n" +
			"  lockbench observe capture --prefix lock: --top 20\n" +
			"  lockbench observe redis://redis.example --for 10s\n" +
			"  lockbench observe --exec 'go test ./...' \\\n    --threshold unsafe_releases==0\n" +
			"  lockbench observe capture -o trace=arrivals.csv \\\n    -o workload=observed.yaml\n" +
			"  lockbench -s spin,handoff,fair --workload observed.yaml",
		Args: cobra.ArbitraryArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.exec, "exec", "", "`command` for sh to run with the address of a new Redis in REDIS_URL and "+
		"LOCKBENCH_REDIS")
	flags.StringArrayVar(&f.thresholds, "threshold", nil, "`limit` of a count over all locks; beyond it the exit code is 99; "+
		"repeatable. Counts: "+strings.Join(observe.CountNames(), ", "))
	flags.DurationVar(&f.live.For, "for", observe.UsualFor, "`time` for which to read MONITOR of a URL, at most "+
		observe.LongestFor.String())
	flags.Int64Var(&f.live.Lines, "lines", observe.UsualLines, "largest `number` of commands to read from a URL")
	flags.StringVar(&f.options.Prefix, "prefix", "",
		"`text` with which the keys of locks begin (default: observe recognises locks by their commands)")
	flags.BoolVar(&f.options.HashKeys, "hash-keys", false,
		"print a hash in place of each key; the hash of a key differs from run to run")
	flags.IntVar(&f.options.Top, "top", 10, "`number` of locks to list, those with the most waits first")
	registerAccess(flags, &f.access)
	out.register(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := a.input(flags).variables(flags)
		names := []string{""}
		if len(args) > 0 {
			names = nil
			for _, arg := range args {
				names = append(names, place(arg))
			}
		}
		thresholds, unknown := observe.ParseThresholds(f.thresholds)
		wrong := f.wrong(flags, args)
		var streams []io.Reader
		var missing []error
		if f.exec == "" && !slices.ContainsFunc(names, isURL) {
			for _, name := range names {
				in, err := opened(name, cmd.InOrStdin())
				if err != nil {
					missing = append(missing, err)
					continue
				}
				defer in.Close()
				streams = append(streams, in)
			}
		}
		trace, homeless := replay(out.given)
		f.options.Trace = trace != ""
		err := given.refuse(prefixed("threshold", unknown), wrong, homeless, errors.Join(missing...),
			check(out.all(false), names...))
		if err != nil {
			return err
		}
		piped := slices.ContainsFunc(out.given, func(o output[*observe.Document]) bool {
			return o.file == "" && o.format != out.usual
		})
		found, err := f.observe(cmd.Context(), a, names, streams, piped)
		if found == nil {
			return err
		}
		found.TraceFile = trace
		revision(&found.Tool)
		found.Judge(thresholds)
		wrote := saveAll(a, out.all(false), found, false)
		return observedOutcome(found, errors.Join(wrote, err))
	}
	return cmd
}

// replay returns the file to which -o trace is written, or "" if there is no such output. The workload that -o workload
// writes refers to that file, so each of the two outputs needs a file name.
func replay(outputs []output[*observe.Document]) (trace string, err error) {
	workload := false
	for _, o := range outputs {
		switch {
		case (o.format == "trace" || o.format == "workload") && o.file == "":
			return "", fmt.Errorf("-o %s needs a file: -o trace=arrivals.csv -o workload=observed.yaml", o.format)
		case o.format == "trace":
			trace = o.file
		}
		workload = workload || o.format == "workload"
	}
	if workload && trace == "" {
		return "", errors.New("-o workload also needs a trace file: add -o trace=arrivals.csv")
	}
	return trace, nil
}

// direct returns the writer that w wraps if w is a *locked, or else w. A child process gets this writer, because a
// child whose reader has stopped must not hold the lock that lockbench's own messages need.
func direct(w io.Writer) io.Writer {
	if l, is := w.(*locked); is {
		return l.to
	}
	return w
}

// isURL reports whether an argument is the URL of a server.
func isURL(name string) bool { return strings.Contains(name, "://") }

// at returns the options for a connection to the server at url.
func (f *observed) at(url string) servers.Options {
	return servers.Options{
		Address: url, CAFile: f.access.CAFile, CertFile: f.access.CertFile, KeyFile: f.access.KeyFile,
		Password: f.access.Password, RunID: store.NewRunID(),
	}
}

// wrong returns all errors in the flags and arguments.
func (f *observed) wrong(flags *pflag.FlagSet, args []string) error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	live := len(args) > 0 && isURL(args[0])
	if flags.Changed("exec") && strings.TrimSpace(f.exec) == "" {
		add("--exec is empty: give a command, such as 'go test ./...'")
	}
	if seen := slices.Sorted(slices.Values(args)); len(args) > 1 &&
		(slices.ContainsFunc(args, func(arg string) bool { return isURL(arg) || arg == "-" }) ||
			len(slices.Compact(seen)) < len(args)) {
		add("several captures must be different files, one of each node of a Redlock: capture each node with " +
			"redis-cli -h HOST monitor > FILE")
	}
	if f.exec != "" && len(args) > 0 {
		add("--exec starts the Redis that it observes: leave out %s, or --exec", untrusted.Printable(quoted(args[0])))
	}
	for _, name := range []string{"for", "lines"} {
		if flags.Changed(name) && (!live || f.exec != "") {
			add("--%s needs the URL of a server, such as redis://redis.example", name)
		}
	}
	if live && f.exec == "" && (f.live.For <= 0 || f.live.For > observe.LongestFor) {
		add("--for must be above 0 and at most %v, not %v", observe.LongestFor, f.live.For)
	}
	if live && f.exec == "" && f.live.Lines < 1 {
		add("--lines must be at least 1, not %d", f.live.Lines)
	}
	if f.options.Top < 1 {
		add("--top must be at least 1, not %d", f.options.Top)
	}
	if live && f.exec == "" {
		problems = append(problems, f.at(args[0]).OneNode())
	}
	return errors.Join(problems...)
}

// quoted returns an argument as an error message shows it. If the argument is a URL, it returns only the scheme,
// because the other parts may contain a password.
func quoted(word string) string {
	if scheme, _, is := strings.Cut(word, "://"); is {
		return scheme + "://…"
	}
	return word
}

// observe observes a command, a server or streams. It can return both a document and an error of a later step. If piped
// is set, standard output gets only the document, because a program reads it.
func (f *observed) observe(
	ctx context.Context, a *app, names []string, streams []io.Reader, piped bool,
) (*observe.Document, error) {
	switch {
	case f.exec != "":
		running := observe.Running{Line: f.exec, Stdout: direct(a.stdout), Stderr: direct(a.stderr)}
		if piped { // the document alone goes to standard output
			running.Stdout = running.Stderr
		}
		running.Began = func(kill func()) { // a second signal kills the command
			a.ended.keep(func() error { kill(); return errors.New("the command was killed") })
		}
		return observe.Run(ctx, running, f.options)
	case isURL(names[0]):
		f.live.Begun = func() { a.say("reading MONITOR for %v", f.live.For.Round(time.Millisecond)) }
		return observe.Watch(ctx, f.at(names[0]), f.live, f.options)
	}
	found, err := observe.ReadNodes(ctx, streams, f.options)
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", streamName(strings.Join(names, " ")), err)
	}
	return found, nil
}

// observedOutcome returns the error of an observation with its exit code. It returns nil if err is nil, the observation
// is complete, the command of --exec succeeded, and no threshold was crossed.
func observedOutcome(found *observe.Document, err error) error {
	if found.Interrupted {
		return &exit{ExitInterrupted, errors.Join(errors.New("interrupted before the end of the stream"), err)}
	}
	code, problems := ExitOK, []error{err}
	if err != nil {
		code = ExitFailure
	}
	if found.Cut {
		code, err = ExitFailure, fmt.Errorf("the capture is incomplete: %s", found.Stopped)
		problems = append(problems, err)
	}
	if c := found.Command; c != nil && c.Code != 0 {
		code = ExitFailure
		problems = append(problems, fmt.Errorf("--exec: the command ended with %s", c.Ended))
	} else if why := found.Unjudged(); why != "" &&
		(c != nil && found.Capture.Commands == 0 || len(found.Thresholds) > 0) {
		return &exit{ExitInvalid, errors.Join(append(problems, fmt.Errorf("no verdict is possible: %s", why))...)}
	}
	for _, j := range found.Crossed() {
		code = ExitThreshold
		problems = append(problems, fmt.Errorf("a threshold was crossed: %s", j))
	}
	if code == ExitOK {
		return nil
	}
	return &exit{code, errors.Join(problems...)}
}

// opened opens a capture: the named file, or standard input if name is "".
func opened(name string, stdin io.Reader) (io.ReadCloser, error) {
	terminal, _ := stdin.(*os.File)
	switch {
	case name == "" && terminal != nil && terminalWidth(terminal) > 0:
		return nil, errors.New("FILE is needed, or a capture on standard input: redis-cli monitor | head -n 200000 | " +
			"lockbench observe; or the URL of a server, or --exec COMMAND")
	case name == "":
		return io.NopCloser(stdin), nil
	}
	file, err := untrusted.Open(name)
	if host, port, no := net.SplitHostPort(name); errors.Is(err, fs.ErrNotExist) && no == nil && host != "" && port != "" {
		return nil, fmt.Errorf("%w; the address of a server needs its scheme: redis://%s", err, name)
	}
	return file, err
}

// streamName returns the name of a capture for error messages.
func streamName(name string) string {
	if name == "" {
		return "standard input"
	}
	return name
}
