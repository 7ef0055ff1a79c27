package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/apps/limits"
	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/workloads"
)

// limited lists the workload options that limits accepts.
var limited = strings.Fields("clients instances keys key-dist hold rate arrivals ttl work pool duration warmup seed")

func (a *app) limits() *cobra.Command {
	out := applicationOutputs(map[string]writer[*limits.Document]{
		"html":     plain(document.WriteHTML[*limits.Document]),
		"markdown": plain(document.WriteMarkdown[*limits.Document]),
	})
	q := limits.Question{Redis: lockbench.StoreOptions{Address: "auto"}}
	var names []string
	var workload workloads.Draft
	var file string
	quiet := false
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Find the highest rate that a lock sustains",
		Long: "Search for the highest rate of arrivals at which the 99th percentile of the waits stays below\n" +
			"--p99, in up to eight short runs of each lock. Given the rate of your service (--rate, or\n" +
			"--workload with a trace of observe), limits also prints the headroom. If the generator itself\n" +
			"cannot offer a rate, the search ends and the limit of this lock is unknown.\n\n" +
			"The exit code is 111 if a claimed guarantee did not hold, and 112 if a limit was not found.",
		Example: "  lockbench limits -s spin,pubsub,handoff --hold 2ms\n" +
			"  lockbench limits -s redsync --hold exp:5ms --p99 50ms \\\n    --rate 60/s -o html=limits.html",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVarP(&names, "strategy", "s", nil, "`list` of locks, as for run; repeatable")
	flags.DurationVar(&q.Limit, "p99", 100*time.Millisecond,
		"`time` below which the 99th percentile of the waits must stay")
	fields := slices.DeleteFunc(workloads.Fields(), func(field workloads.Field) bool {
		return !slices.Contains(limited, field.Name)
	})
	for i := range fields {
		if fields[i].Name == "rate" {
			fields[i].Help = "arrivals of your service per second, for the headroom"
		}
	}
	servers, outputs, shape := group("Servers"), group("Outputs"), group("Workload")
	registerWorkload(shape, &file, &workload, fields)
	all := stores{redis: &q.Redis}
	all.register(servers, "")
	all.registerTopology(servers, "")
	registerImage(servers, &q.Redis)
	out.register(outputs)
	registerQuiet(outputs, &quiet)
	addGroups(flags, shape, servers, outputs)
	complete(cmd, out.names())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := a.input(flags).variables(flags)
		read := given.workload(file, &workload)
		points, unclear := workload.Points()
		problems := flatten(unclear)
		if len(points) > 1 {
			problems = append(problems, errors.New("limits takes one workload, not a sweep: give one value for each option"))
		}
		known, notes := recognised(names, true)
		var wrong error
		if q.Strategies, wrong = driver.Parse(driver.Asked(cmd.Context()), known...); wrong != nil {
			problems = append(problems, prefixed("strategy", wrong))
		}
		if len(points) > 0 {
			q.Workload = points[0].Workload
		}
		if wrong == nil {
			problems = append(problems, q.Validate())
		}
		problems = append(problems, q.Redis.Validate(),
			check(out.all(quiet), inputs(file, workload, q.Redis.CAFile)...))
		if err := given.refuse(read, errors.Join(problems...)); err != nil {
			return err
		}
		if !quiet {
			for _, note := range notes {
				a.say("%s", note)
			}
			a.say("searching the limits of %s: about %v", q.Progress(), q.Expected().Round(time.Second))
			q.Found = func(lock string, p limits.Point) { a.say("%s at %s", lock, p) }
		}
		found, err := q.Answer(cmd.Context(), q.Measure)
		if len(found.Locks) == 0 && err != nil {
			return err
		}
		revision(&found.Tool)
		return limitsFound(found, errors.Join(err, saveAll(a, out.all(quiet), found, quiet)))
	}
	return cmd
}

// limitsFound returns the error of a search with its exit code, or nil if a limit was found for each lock.
func limitsFound(found *limits.Document, err error) error {
	switch unsafe, unclear := found.Unsafe(), found.Unclear(); {
	case found.Interrupted:
		return &exit{ExitInterrupted, errors.New("interrupted; some limits are missing")}
	case err != nil:
		return err
	case len(unsafe) > 0:
		return &exit{ExitSafety, fmt.Errorf("a claimed guarantee did not hold: %s", words.And(unsafe))}
	case len(unclear) > 0:
		return &exit{ExitInvalid, fmt.Errorf("no limit was found for %s", words.And(unclear))}
	}
	return nil
}
