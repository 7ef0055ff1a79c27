package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/results/compare"
	"github.com/lockbench/lockbench/results/trend"
)

// history holds the flags of trend.
type history struct {
	add        string
	commit     string
	metrics    []string
	strategies []string
	last       int
	rules      compare.Rules
	outputs    []string
}

func (a *app) trend() *cobra.Command {
	h := &history{last: 500, rules: trend.DefaultRules()}
	cmd := &cobra.Command{
		Use:   "trend HISTORY...",
		Short: "Show how a project's figures changed over time",
		Long: "Plot histories, which are files of JSON lines, and say where a figure began to be another one:\n" +
			"change points by E-divisive, on blocks of neighbours since neighbours are alike. Reports of different workloads or machines are series of their own.",
		Example: "  lockbench -s pubsub --runs 5 -o json=run.json\n" +
			"  lockbench trend results/history/pubsub.jsonl --add run.json --commit $(git rev-parse --short HEAD)\n" +
			"  lockbench trend 'results/history/*.jsonl' --metric wait_p99 -o text -o svg=trend.svg",
		Args:               cobra.ArbitraryArgs,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.Var(textValue("reports", &h.add), "add", "add these reports, a file, a directory or a quoted glob, to the history first")
	set.Var(textValue("sha", &h.commit), "commit", "what the added reports measured (default the version that they name)")
	set.Var(listValue("name", &h.metrics), "metric", "show this metric; repeatable (default "+strings.Join(usualMetrics(), ", ")+")")
	set.VarP(listValue("name", &h.strategies), "strategy", "s", "show this strategy only, named in full; repeatable")
	set.Var(intValue(&h.last), "last", "look at so many of the latest reports of each series")
	set.Var(percentage(&h.rules.Threshold), "threshold", "least change that counts")
	set.Var(percentage(&h.rules.CountThreshold), "count-threshold", "the same for what is counted per acquisition")
	set.Var(percentage(&h.rules.Alpha), "alpha", "probability of a change that is none, in histories of many reports")
	set.VarP(listValue("format", &h.outputs), "output", "o", "text, json, svg or png, with =FILE to write a file; repeatable (default text)")
	cmd.RunE = func(_ *cobra.Command, files []string) error {
		metrics, err := h.chosen()
		outputs, outputErr := parseOutputs(h.outputs, "text", formats[[]trend.Series]{one: trendFormats()})
		if faults := a.problems(source{set: set}, err, outputErr, h.validate(files), a.admit(h.reads(files), append(h.begun(files), places(outputs)...))); faults != nil {
			return faults
		}
		if h.commit != "" && h.add == "" {
			a.warn("--commit has no effect without --add")
		}
		if h.add != "" {
			if err := h.append(a, files[0]); err != nil {
				return err
			}
		}
		entries, err := readHistories(files)
		if err != nil {
			return err
		}
		series := slices.DeleteFunc(trend.Build(entries, metrics, h.last, h.rules), func(s trend.Series) bool {
			return len(h.strategies) > 0 && !slices.Contains(h.strategies, s.Strategy)
		})
		if err := saveAll(a, outputs, series); err != nil {
			return &exit{ExitFailure, err}
		}
		return nil
	}
	return cmd
}

// usualMetrics are the metrics that trend shows by default.
func usualMetrics() []string { return []string{compare.DefaultMetric, "wait_p99", "commands_per_acq"} }

func trendFormats() map[string]writer[[]trend.Series] {
	return map[string]writer[[]trend.Series]{
		"text": func(w io.Writer, s []trend.Series, _ bool) error { return trend.WriteText(w, s) },
		"json": func(w io.Writer, s []trend.Series, _ bool) error { return trend.WriteJSON(w, s) },
		"svg":  func(w io.Writer, s []trend.Series, _ bool) error { return trend.WriteSVG(w, s) },
		"png":  func(w io.Writer, s []trend.Series, _ bool) error { return trend.WritePNG(w, s) },
	}
}

// chosen returns the metrics to show, and every error in their names.
func (h *history) chosen() ([]compare.Metric, error) {
	names := h.metrics
	if len(names) == 0 {
		names = usualMetrics()
	}
	var metrics []compare.Metric
	var problems []error
	for _, name := range names {
		m, err := compare.ParseMetric(name)
		if err != nil {
			problems = append(problems, fmt.Errorf("--metric: %w", err))
		}
		metrics = append(metrics, m)
	}
	return metrics, errors.Join(problems...)
}

func (h *history) validate(files []string) error {
	var problems []error
	if h.last < 1 {
		problems = append(problems, fmt.Errorf("--last must be at least 1, not %d", h.last))
	}
	switch {
	case len(files) == 0:
		problems = append(problems, errors.New("HISTORY is needed: files of JSON lines such as results/history/pubsub.jsonl"))
	case h.add != "" && (len(files) > 1 || strings.ContainsAny(files[0], "*?[")):
		problems = append(problems, errors.New("--add needs one HISTORY to add to"))
	}
	return errors.Join(problems...)
}

// reads returns the histories and the reports to add.
func (h *history) reads(histories []string) []file {
	return append(reads("HISTORY", histories...), reads("--add", h.add)...)
}

// begun returns the history that --add makes; none if it exists.
func (h *history) begun(histories []string) []file {
	if h.add == "" || len(histories) != 1 {
		return nil
	}
	if _, err := os.Stat(histories[0]); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return []file{{"HISTORY", histories[0], histories[0]}}
}

// append adds the reports' lines to a history, and makes it if there is none.
func (h *history) append(a *app, file string) error {
	side, err := a.readSide(h.add)
	if err != nil {
		return err
	}
	known, err := readHistories([]string{file})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // the file is no history: leave it as it is
	}
	var lines strings.Builder
	for _, report := range side.Reports {
		commit := h.commit
		if commit == "" {
			commit = report.Tool.Version
		}
		entries := trend.Entries(report, commit)
		for i := range entries {
			entries[i].Place = report.File
		}
		known = append(known, entries...)
		if err := trend.Write(&lines, entries); err != nil {
			return &exit{ExitFailure, err}
		}
	}
	if twice := trend.Twice(known); twice != nil {
		return fmt.Errorf("--add: %w", twice)
	}
	if lines.Len() == 0 {
		return &exit{ExitInvalid, fmt.Errorf("--add: %s has no run that can be trusted", h.add)}
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err == nil {
		_, err = io.WriteString(f, lines.String())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return &exit{ExitFailure, fmt.Errorf("add to the history: %w", err)}
	}
	return nil
}

// readHistories reads every file that the names and globs stand for.
func readHistories(names []string) ([]trend.Entry, error) {
	var entries []trend.Entry
	var problems []error
	var seen []string
	for _, name := range names {
		files := []string{name}
		if matched, err := filepath.Glob(name); err == nil && len(matched) > 0 {
			files = matched
		}
		for _, file := range files {
			if slices.Contains(seen, filepath.Clean(file)) {
				problems = append(problems, fmt.Errorf("%s is given twice: a report counts once", file))
				continue
			}
			seen = append(seen, filepath.Clean(file))
			more, err := readHistory(file)
			problems = append(problems, err)
			entries = append(entries, more...)
		}
	}
	return entries, errors.Join(append(problems, trend.Twice(entries))...)
}

func readHistory(file string) ([]trend.Entry, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return trend.Read(f, file)
}
