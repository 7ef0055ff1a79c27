package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/apps/observe"
	"github.com/lockbench/lockbench/internal/untrusted"
)

func (a *app) observe() *cobra.Command {
	var options observe.Options
	out := applicationOutputs(map[string]writer[*observe.Document]{
		"markdown": plain(document.WriteMarkdown[*observe.Document]),
		"trace":    plain(func(w io.Writer, d *observe.Document) error { return d.WriteTrace(w) }),
		"workload": plain(func(w io.Writer, d *observe.Document) error { return d.WriteWorkload(w) }),
	})
	cmd := &cobra.Command{
		Use:   "observe [FILE|-]",
		Short: "Show a service's lock contention from MONITOR",
		Long: "Read what redis-cli monitor printed, from a file or standard input, and print for each lock how\n" +
			"often it is taken, how many tries that takes, how long it is held and waited for, and what is unsafe:\n" +
			"leases without a TTL, leases that expire, deletes of another's lease. It connects to no server, and\n" +
			"knows the shapes of the common libraries. Values are hashed as they are read; --hash-keys hides the\n" +
			"keys, too. MONITOR costs a server up to half of its throughput: capture for seconds.",
		Example: "  redis-cli monitor | head -n 200000 > capture\n" +
			"  timeout 10 redis-cli monitor | lockbench observe\n" +
			"  lockbench observe capture --prefix lock: --top 20\n" +
			"  lockbench observe capture -o trace=arrivals.csv \\\n    -o workload=observed.yaml\n" +
			"  lockbench -s spin,handoff,fair --workload observed.yaml",
		Args: cobra.MaximumNArgs(1),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&options.Prefix, "prefix", "",
		"`text` that the keys of locks begin with (default: find the locks by how keys are used)")
	flags.BoolVar(&options.HashKeys, "hash-keys", false, "print a hash in place of each key, of another kind each time")
	flags.IntVar(&options.Top, "top", 10, "`number` of locks to list, those with most waits first")
	out.register(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := a.input(flags).variables(flags)
		var name string
		if len(args) > 0 {
			name = place(args[0])
		}
		var wrong error
		if options.Top < 1 {
			wrong = fmt.Errorf("--top must be at least 1, not %d", options.Top)
		}
		in, missing := opened(name, cmd.InOrStdin())
		if missing == nil {
			defer in.Close()
		}
		trace, homeless := replay(out.given)
		options.Trace = trace != "" || homeless != nil
		if err := given.refuse(wrong, homeless, missing, check(out.all(false), name)); err != nil {
			return err
		}
		found, err := observe.Read(cmd.Context(), in, options)
		if err != nil {
			return fmt.Errorf("observe %s: %w", streamName(name), err)
		}
		found.TraceFile = trace
		revision(&found.Tool)
		if err := saveAll(a, out.all(false), found, false); err != nil {
			return err
		}
		if found.Interrupted {
			return &exit{ExitInterrupted, errors.New("interrupted, the stream was not read to its end")}
		}
		return nil
	}
	return cmd
}

// replay returns the file of the trace among the outputs. A workload file names it, so neither goes to the screen.
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
		return "", errors.New("-o workload names the file of the trace: add -o trace=arrivals.csv")
	}
	return trace, nil
}

// opened opens a stream to read: a file, or standard input without a name.
func opened(name string, stdin io.Reader) (io.ReadCloser, error) {
	terminal, _ := stdin.(*os.File)
	switch {
	case name == "" && terminal != nil && terminalWidth(terminal) > 0:
		return nil, errors.New("FILE is needed, or a capture on standard input: redis-cli monitor | head -n 200000 | " +
			"lockbench observe")
	case name == "":
		return io.NopCloser(stdin), nil
	case strings.Contains(name, "://"):
		return nil, errors.New("observe reads a capture, not a server: " +
			"redis-cli -u ADDRESS monitor | head -n 200000 | lockbench observe")
	}
	return untrusted.Open(name)
}

// streamName names a stream in errors.
func streamName(name string) string {
	if name == "" {
		return "standard input"
	}
	return name
}
