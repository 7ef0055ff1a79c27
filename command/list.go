package command

import (
	"cmp"
	"errors"
	"fmt"
	"go/doc/comment"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

func (a *app) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list [NAME]...",
		Short: "List the strategies, tell all about some, or list the faults (list faults)",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return append(strategyNames(), "faults"), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, names []string) error {
			if len(names) == 0 {
				return printed(listAll(cmd.OutOrStdout()))
			}
			if slices.Equal(names, []string{"faults"}) {
				return printed(listFaults(cmd.OutOrStdout()))
			}
			return a.tell(cmd.OutOrStdout(), names)
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

// printed gives an error of writing to standard output its exit code.
func printed(err error) error {
	if err == nil {
		return nil
	}
	return &exit{ExitFailure, fmt.Errorf("print: %w", err)}
}

func listAll(w io.Writer) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "NAME\tCLAIMS\tIDEA")
	for _, s := range strategies.All() {
		fmt.Fprintf(columns, "%s\t%s\t%s\n", s.Info.Name, promised(s.Info), s.Info.Summary)
	}
	for _, w := range strategies.Wrappers() {
		fmt.Fprintf(columns, "%s:NAME\t%s\t%s\n", w.Name, w.Claims, w.Summary)
	}
	return columns.Flush() // returns the errors of earlier writes too
}

// promised says what a strategy promises, and whether it can keep it.
func promised(i strategies.Info) string {
	switch {
	case i.Caveat != "":
		return i.Claims.String() + " (unsafe)"
	case i.Assumes != "":
		return i.Claims.String() + " (if " + i.Assumes + ")"
	}
	return i.Claims.String()
}

// tell prints all about each strategy, or returns an error that names every unknown one.
func (a *app) tell(w io.Writer, names []string) error {
	var variants []strategies.Strategy
	var problems []error
	for _, name := range names {
		s, err := strategies.Lookup(name)
		if err != nil {
			problems = append(problems, flatten(err)...)
		}
		variants = append(variants, s)
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	for i, s := range variants {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return printed(err)
			}
		}
		if err := story(w, s); err != nil {
			return printed(err)
		}
	}
	return nil
}

// docWidth is the width of a terminal, less a margin.
const docWidth = 100

func story(w io.Writer, s strategies.Strategy) error {
	i := s.Info
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(columns, "%s\t%s\n", label, text)
		}
	}
	line("name", i.Name)
	line("idea", i.Summary)
	line("claims", i.Claims.String())
	line("assumes", i.Assumes)
	line("unsafe", i.Caveat)
	for n, limit := range i.Limits {
		label := ""
		if n == 0 {
			label = "fails"
		}
		line(label, fmt.Sprintf("the check %q, since %s", limit.Check, limit.Because))
	}
	line("holders", atATime(i.Capacity))
	line("nodes", nodes(i))
	if i.Since.Redis != "" {
		line("needs", i.Since.String())
	}
	if i.MaxInstances > 0 {
		line("instances", fmt.Sprintf("at most %d", i.MaxInstances))
	}
	line("connections", connections(i.Connections))
	line("keeps", strings.Join(i.Persistent, ", "))
	rights(line, i)
	if module := versions([]string{i.Library}); len(module) > 0 {
		line("library", module[0])
	}
	for n, library := range i.Libraries {
		label := ""
		if n == 0 {
			label = "found in"
		}
		line(label, library.String())
	}
	line("package", i.Package)
	if i.BlackBox {
		line("black box", "its attempts and wake-ups cannot be seen")
	}
	if i.Doc != "" {
		var parser comment.Parser
		printer := comment.Printer{TextWidth: docWidth}
		fmt.Fprintf(columns, "\n%s", printer.Text(parser.Parse(i.Doc)))
	}
	if options := s.Options(); len(options) > 0 {
		fmt.Fprintln(columns, "\nOPTION\tDEFAULT\tMEANING")
		for _, o := range options {
			fmt.Fprintf(columns, "%s\t%s\t%s\n", o.Name, o.Default, o.Help)
		}
		fmt.Fprintf(columns, "\nset with --strategy %s:%s=%s\n", i.Name, options[0].Name, options[0].Default)
	}
	return columns.Flush()
}

func atATime(capacity int) string {
	if capacity == 0 {
		return "any number at a time"
	}
	return fmt.Sprintf("%d at a time", capacity)
}

func nodes(i strategies.Info) string {
	if i.Nodes == 0 {
		return "none: it lives in the process"
	}
	title := cmp.Or(i.Store, store.Redis)
	if kind, err := store.Lookup(i.Store); err == nil {
		if speaker, ok := kind.(store.Speaker); ok {
			title = speaker.Title()
		}
	}
	return fmt.Sprintf("%d %s", i.Nodes, title)
}

func connections(c strategies.Connections) string {
	var parts []string
	if c.PerInstance > 0 {
		parts = append(parts, fmt.Sprintf("%d an instance", c.PerInstance))
	}
	if c.PerWaiter > 0 {
		parts = append(parts, fmt.Sprintf("%d a waiting client", c.PerWaiter))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, " and ") + ", beside the instance's pool"
}

// rights prints what a strategy's user needs: for Redis as a redis-cli command, for another
// store in the store's own words.
func rights(line func(label, text string), i strategies.Info) {
	if !i.OnRedis() {
		if kind, err := store.Lookup(i.Store); i.Nodes > 0 && err == nil {
			if needer, ok := kind.(store.Needer); ok {
				label := "needs"
				for _, need := range needer.Needs("lockbench") {
					line(label, need)
					label = ""
				}
			}
		}
		return
	}
	if !i.Rights.Declared() { // a user with no rights could do nothing
		line("ACL", "not declared")
		return
	}
	line("ACL", i.Rights.SetUser("bench", engine.Prefix))
	line("", "in a database other than 0 also +"+strategies.Selecting)
	if i.NoCluster == "" {
		line("", "in a cluster also "+strings.Join(clusterRights(i.Rights), " "))
	}
	line("", "for all figures also "+strings.Join(servers.MeasuringRights(), " "))
}

// clusterRights returns what the lock, its client and lockbench need in a cluster.
func clusterRights(r strategies.Rights) []string {
	var all []string
	for _, command := range slices.Concat(strategies.ConnectingCluster(), r.Cluster) {
		all = append(all, "+"+command)
	}
	return append(all, servers.ClusterRights()...)
}

// listFaults prints what --fault accepts.
func listFaults(w io.Writer) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "FAULT\tOPTIONS\tWHAT HAPPENS")
	var options []workloads.FaultOption
	known := map[string]bool{}
	for _, kind := range workloads.FaultKinds() {
		var settings []string
		for _, o := range kind.Options() {
			settings = append(settings, o.Name+"="+o.Default)
			if !known[o.Name] {
				known[o.Name] = true
				options = append(options, o)
			}
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\n", kind.Name, strings.Join(settings, ","), kind.Summary)
	}
	fmt.Fprintln(columns)
	for _, o := range options {
		fmt.Fprintf(columns, "%s\t%s\n", o.Name, o.Help)
	}
	fmt.Fprintln(columns, "\nset with --fault holder-pause:at=2s,for=3s; details are in docs/FAULTS.md")
	return columns.Flush() // returns the errors of earlier writes too
}
