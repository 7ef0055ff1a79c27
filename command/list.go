package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/doc/comment"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

func (a *app) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list [NAME]...",
		Short: "List strategies and faults, or describe some",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return append(strategyNames(), "faults"), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, names []string) error {
			switch {
			case len(names) == 0:
				return a.columns(allStrategies())
			case slices.Equal(names, []string{"faults"}):
				return a.columns(allFaults())
			}
			names, notes := recognised(names, false)
			for _, note := range notes {
				a.say("%s", note)
			}
			rows, err := described(names, a.width())
			if err != nil {
				return err
			}
			return a.columns(rows)
		},
	}
}

func strategyNames() []string {
	var names []string
	for _, s := range strategies.All() {
		names = append(names, s.Info.Name)
	}
	return names
}

func allStrategies() [][]string {
	rows := [][]string{{"NAME", "CLAIMS", "IDEA"}}
	for _, s := range strategies.All() {
		claims := s.Info.Claims.String()
		if s.Info.Caveat != "" {
			claims += " (unsafe)"
		} else if s.Info.Assumes != "" {
			claims += " (if " + s.Info.Assumes + ")"
		}
		rows = append(rows, []string{s.Info.Name, claims, s.Info.Summary})
	}
	for _, w := range strategies.Wrappers() {
		rows = append(rows, []string{w.Name + ":NAME", w.Claims, w.Summary})
	}
	return rows
}

// described returns all about each strategy, or an error that names every unknown one.
func described(names []string, wide int) (rows [][]string, err error) {
	var problems []error
	for i, name := range names {
		s, err := strategies.Lookup(name)
		if err != nil {
			problems = append(problems, flatten(err)...)
			continue
		}
		if i > 0 {
			rows = append(rows, nil)
		}
		rows = append(rows, description(s, wide)...)
	}
	return rows, errors.Join(problems...)
}

func description(s strategies.Strategy, wide int) [][]string {
	i := s.Info
	var rows [][]string
	// Only the first of several texts is labelled.
	line := func(label string, texts ...string) {
		for _, text := range texts {
			if text != "" {
				rows = append(rows, []string{label, text})
				label = ""
			}
		}
	}
	line("name", i.Name)
	line("idea", i.Summary)
	line("claims", i.Claims.String())
	line("assumes", i.Assumes)
	line("unsafe", i.Caveat)
	var fails, libraries []string
	for _, limit := range i.Limits {
		fails = append(fails, fmt.Sprintf("the check %q, since %s", limit.Check, limit.Because))
	}
	for _, library := range i.Libraries {
		libraries = append(libraries, library.String())
	}
	line("fails", fails...)
	holders := "any number at a time"
	if i.Capacity > 0 {
		holders = fmt.Sprintf("%d at a time", i.Capacity)
	}
	line("holders", holders)
	line("nodes", nodes(i))
	if i.Since.Redis != "" {
		line("needs", i.Since.String())
	}
	if i.MaxInstances > 0 {
		line("instances", fmt.Sprintf("at most %d", i.MaxInstances))
	}
	line("connections", connections(i.Connections))
	line("keeps", strings.Join(i.Persistent, ", "))
	rights(func(label string, texts ...string) {
		var all []string
		for _, text := range texts {
			all = append(all, pasteable(text, wide-len("connections  "))...)
		}
		line(label, all...)
	}, i)
	line("library", versions([]string{i.Library})...)
	line("found in", libraries...)
	line("package", i.Package)
	if i.BlackBox {
		line("black box", "its attempts and wake-ups cannot be seen")
	}
	if i.Doc != "" {
		var parser comment.Parser
		printer := comment.Printer{TextWidth: wide}
		text := strings.TrimSuffix(string(printer.Text(parser.Parse(i.Doc))), "\n")
		rows = append(rows, nil, []string{text})
	}
	return append(rows, describedOptions(i.Name, s.Options())...)
}

// pasteable breaks a command that makes a user of Redis into several that fit, each of which adds to the user's rights.
func pasteable(text string, room int) []string {
	const command = "ACL SETUSER bench "
	if strings.HasPrefix(text, command) {
		return layout.Wrap(text, room, command)
	}
	return []string{text}
}

func describedOptions(name string, options []strategies.Option) (rows [][]string) {
	for n, o := range options {
		if n == 0 {
			rows = append(rows, nil, []string{"OPTION", "DEFAULT", "MEANING"})
		}
		rows = append(rows, []string{o.Name, o.Default, o.Help})
	}
	if len(options) > 0 {
		set := fmt.Sprintf("set with --strategy %s:%s=%s", name, options[0].Name, options[0].Default)
		rows = append(rows, nil, []string{set})
	}
	return rows
}

func nodes(i strategies.Info) string {
	if i.Nodes == 0 {
		return "none: it lives in the process"
	}
	title := cmp.Or(i.Store, store.Redis)
	if kind, err := store.Lookup(i.Store); err == nil {
		if titled, ok := kind.(store.Titled); ok {
			title = titled.Title()
		}
	}
	return fmt.Sprintf("%d %s", i.Nodes, title)
}

func connections(c strategies.Connections) string {
	var parts []string
	if c.PerInstance > 0 {
		parts = append(parts, fmt.Sprintf("%d per instance", c.PerInstance))
	}
	if c.PerWaiter > 0 {
		parts = append(parts, fmt.Sprintf("%d per waiting client", c.PerWaiter))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, " and ") + ", besides the instance's pool"
}

// rights prints what a strategy's user needs: for Redis as a redis-cli command, for another
// store in the store's own words.
func rights(line func(label string, texts ...string), i strategies.Info) {
	switch kind, err := store.Lookup(i.Store); {
	case i.OnRedis() && !i.Rights.Declared(): // a user with no rights could do nothing
		line("ACL", "not declared")
	case i.OnRedis():
		texts := []string{
			i.Rights.SetUser("bench", engine.Prefix),
			"in a database other than 0 also +" + strategies.Selecting,
		}
		if len(i.Rights.Newer) > 0 {
			texts = append(texts, "where the server has it also +"+strings.Join(i.Rights.Newer, " or +"))
		}
		if i.NoCluster == "" {
			texts = append(texts, "in a cluster also "+strings.Join(clusterRights(i.Rights), " "))
		}
		line("ACL", append(texts, "for all figures also "+strings.Join(servers.MeasuringRights(), " "))...)
	case i.Nodes > 0 && err == nil:
		if needer, ok := kind.(store.Needer); ok {
			line("needs", needer.Needs("lockbench")...)
		}
	}
}

// clusterRights returns what the lock, its client and lockbench need in a cluster.
func clusterRights(r strategies.Rights) []string {
	var all []string
	for _, command := range slices.Concat(strategies.ConnectingCluster(), r.Cluster) {
		all = append(all, "+"+command)
	}
	return append(all, servers.ClusterRights()...)
}

// allFaults says what --fault accepts.
func allFaults() [][]string {
	rows := [][]string{{"FAULT", "OPTIONS", "WHAT HAPPENS"}}
	var options [][]string
	known := map[string]bool{}
	for _, kind := range workloads.FaultKinds() {
		var settings []string
		for _, o := range kind.Options() {
			settings = append(settings, o.Name+"="+o.Default)
			if !known[o.Name] {
				known[o.Name] = true
				options = append(options, []string{o.Name, o.Help})
			}
		}
		rows = append(rows, []string{kind.Name, strings.Join(settings, ","), kind.Summary})
	}
	return slices.Concat(rows, [][]string{nil}, options,
		[][]string{nil, {"set with --fault holder-pause:at=2s,for=3s"}, {"details are in docs/FAULTS.md"}})
}

func (a *app) drivers() *cobra.Command {
	return &cobra.Command{
		Use:               "drivers",
		Short:             "List the drivers of locks in other languages",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.columns(allDrivers(cmd.Context()))
		},
	}
}

// allDrivers starts every driver and asks what it is.
func allDrivers(ctx context.Context) [][]string {
	rows := [][]string{{"NAME", "CLAIMS", "LOCK"}}
	found := driver.All()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		hello, err := driver.Greet(ctx, []string{found[name]})
		called := driver.Prefix + untrusted.Printable(name) // a file of that name
		if err != nil {
			rows = append(rows, []string{called, "–", "cannot be used: " + untrusted.Printable(err.Error())})
			continue
		}
		rows = append(rows, []string{called, hello.Info.Claims.String(), hello.Info.Summary})
	}
	if len(found) == 0 {
		rows = append(rows, []string{"none", "", "in " + driver.PathVariable + " and the installation: see docs/DRIVERS.md"})
	}
	return rows
}
