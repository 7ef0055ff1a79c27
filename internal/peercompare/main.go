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
	"slices"
	"strings"
	"syscall"
	"time"

	_ "github.com/lockbench/lockbench/strategies/all"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) { // which has been shown
			fmt.Fprintln(os.Stderr, "peercompare:", err)
		}
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// settings are the flags.
type settings struct {
	quick     bool
	rounds    int
	sweep     int // rounds of everything but the main table
	warmup    time.Duration
	window    time.Duration // 0: found in a round of its own
	clients   int
	scenarios string
	ours      string
	redis     string
	data      string
	from      string
	out       string
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
		for name := range strings.SplitSeq(set.ours, ",") {
			if !slices.Contains(registered(set.ours), name) {
				fmt.Fprintf(progress, "left out, as there is no such strategy: %s\n", name)
			}
		}
		if err := measure(ctx, set, all, progress); err != nil {
			return err
		}
	}
	measured, err := read(folder, all)
	if err != nil {
		return err
	}
	page := write(measured, libraries())
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
	flags.BoolVar(&set.quick, "quick", false, "a look in minutes: 3 rounds of 2 s, the main scenarios, to standard output")
	flags.IntVar(&set.rounds, "rounds", 11, "rounds of the main table")
	flags.IntVar(&set.sweep, "sweep-rounds", 5, "rounds of the sweep over instances and of think time")
	flags.DurationVar(&set.warmup, "warmup", 2*time.Second, "of each run")
	flags.DurationVar(&set.window, "window", 0, "of each run; 0 is ten times the longest p99 seen in a first round, from 5 s to 30 s")
	flags.IntVar(&set.clients, "clients", 500, "clients in all")
	flags.StringVar(&set.scenarios, "scenarios", "", "only these, with commas: "+strings.Join(names(), ","))
	flags.StringVar(&set.ours, "ours", strings.Join(ours[:], ","), "our own locks; those that are not registered are left out")
	flags.StringVar(&set.redis, "redis", "auto", "as lockbench --redis")
	flags.StringVar(&set.data, "data", filepath.Join("bin", "peers"), "folder for the reports, one a round and scenario")
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
	quick("rounds", func() { set.rounds = 3 })
	quick("sweep-rounds", func() { set.sweep = 3 })
	quick("window", func() { set.window = 2 * time.Second })
	quick("warmup", func() { set.warmup = time.Second })
	quick("scenarios", func() { set.scenarios = "hold0,hold1ms" })
	quick("out", func() { set.out = "-" })
	var faults []error
	if set.rounds < 1 || set.sweep < 1 {
		faults = append(faults, fmt.Errorf("-rounds and -sweep-rounds must be at least 1, not %d and %d", set.rounds, set.sweep))
	}
	if set.clients < 1 {
		faults = append(faults, fmt.Errorf("-clients must be at least 1, not %d", set.clients))
	}
	if set.window < 0 || set.warmup < 0 {
		faults = append(faults, fmt.Errorf("-window and -warmup must not be negative, not %v and %v", set.window, set.warmup))
	}
	if flags.NArg() > 0 {
		faults = append(faults, fmt.Errorf("there are no arguments, only flags: %q", flags.Args()))
	}
	return set, errors.Join(faults...)
}
