// Command peercompare measures this module's own locks beside the best-known Go
// libraries, in interleaved rounds, and writes docs/PEERS.md from what it measured.
// See make peers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	_ "github.com/lockbench/lockbench/strategies/all"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := run
	if len(os.Args) == 2 && os.Args[1] == generator {
		command = func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
			return generate(ctx, os.Stdin, stdout)
		}
	}
	if err := command(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) { // which has been shown
			fmt.Fprintln(os.Stderr, "peercompare:", err)
		}
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// settings are the flags.
type settings struct {
	quick      bool
	rounds     int
	warmup     time.Duration
	window     time.Duration
	scenarios  string
	strategies string
	redis      string
	data       string
	from       string
	out        string
}

func run(ctx context.Context, args []string, stdout, progress io.Writer) error {
	set, err := parse(args, progress)
	if err != nil {
		return err
	}
	all, err := scenarios(set)
	if err != nil {
		return err
	}
	folder := set.from
	if folder == "" {
		folder = set.data
		if err := measure(ctx, set, all, progress); err != nil {
			return err
		}
	}
	measured, err := read(folder, everything(nil))
	if err != nil {
		return err
	}
	page := write(measured, versions())
	if set.out == "-" {
		_, err = io.WriteString(stdout, page)
	} else {
		err = os.WriteFile(set.out, []byte(page), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func parse(args []string, help io.Writer) (settings, error) {
	var set settings
	flags := flag.NewFlagSet("peercompare", flag.ContinueOnError)
	flags.SetOutput(help)
	flags.BoolVar(&set.quick, "quick", false, "a look in minutes: one round of 500 ms, to standard output")
	flags.IntVar(&set.rounds, "rounds", 7, "rounds of each scenario")
	flags.DurationVar(&set.warmup, "warmup", 400*time.Millisecond, "of each run")
	flags.DurationVar(&set.window, "window", time.Second, "of each run")
	flags.StringVar(&set.scenarios, "scenarios", "", "only these, with commas; a name without its hold is both: "+strings.Join(names(), ","))
	flags.StringVar(&set.strategies, "strategies", "", "measure these in place of each scenario's own; the first of ours is judged by the targets")
	flags.StringVar(&set.redis, "redis", "auto", "as lockbench --redis")
	flags.StringVar(&set.data, "data", filepath.Join("bin", "peers"), "folder for the reports, one a round and scenario; those of other scenarios stay, and are in the page too")
	flags.StringVar(&set.from, "from", "", "measure nothing, write the page from that folder's reports")
	flags.StringVar(&set.out, "out", filepath.Join("docs", "PEERS.md"), "the page; - is standard output")
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	quick := func(name string, apply func()) {
		if set.quick && !given[name] {
			apply()
		}
	}
	quick("rounds", func() { set.rounds = 1 })
	quick("window", func() { set.window = 500 * time.Millisecond })
	quick("warmup", func() { set.warmup = 200 * time.Millisecond })
	quick("out", func() { set.out = "-" })
	var faults []error
	if set.rounds < 1 {
		faults = append(faults, fmt.Errorf("-rounds must be at least 1, not %d", set.rounds))
	}
	if set.window <= 0 || set.warmup < 0 {
		faults = append(faults, fmt.Errorf("-window must be positive and -warmup not negative, not %v and %v", set.window, set.warmup))
	}
	if flags.NArg() > 0 {
		faults = append(faults, fmt.Errorf("there are no arguments, only flags: %q", flags.Args()))
	}
	return set, errors.Join(faults...)
}
