package command

import (
	"cmp"
	"errors"
	"fmt"
	"go/doc/comment"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
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
				return a.printList()
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

// groups lists the sections of the list, in order. A strategy appears in the first group whose takes function returns
// true.
var groups = []struct {
	title string
	takes func(strategies.Info) bool
}{
	{"Redis", func(i strategies.Info) bool { return i.OnRedis() && i.Caveat == "" && !i.OnlyCounter }},
	{"Other stores", func(i strategies.Info) bool { return i.Store != "" && i.Caveat == "" }},
	{"Baselines", func(i strategies.Info) bool { return i.Nodes == 0 || i.OnlyCounter }},
	{"Unsafe variants", func(strategies.Info) bool { return true }},
}

// listedLock is an entry of the list: the columns of its line and, in idea, the text below them.
type listedLock struct{ name, claims, language, library, idea string }

func listedLockOf(i strategies.Info) listedLock {
	l := listedLock{name: i.Name, claims: i.Claims.String(), idea: i.Summary}
	if i.Assumes != "" {
		l.claims += " (if " + i.Assumes + ")"
	}
	if i.Caveat != "" {
		l.idea += "; unsafe: " + i.Caveat
	}
	if len(i.Libraries) > 0 { // the list has room for one library
		l.language, l.library = i.Libraries[0].Language, shortPackage(i.Libraries[0].Package)
	}
	return l
}

// version matches a major-version element of a Go package path, such as /v9.
var version = regexp.MustCompile(`/v\d+(/|$)`)

// shortPackage returns the last element of a package name, such as redislock or redisson.
func shortPackage(name string) string {
	name = version.ReplaceAllString(name[strings.LastIndex(name, ":")+1:], "$1")
	return path.Base(strings.TrimSuffix(name, "/"))
}

// printList prints all strategies in their groups.
func (a *app) printList() error {
	inGroups := make([][]listedLock, len(groups))
	for _, s := range strategies.All() {
		for at, group := range groups {
			if group.takes(s.Info) {
				inGroups[at] = append(inGroups[at], listedLockOf(s.Info))
				break
			}
		}
	}
	head := listedLock{name: "NAME", claims: "CLAIMS", language: "LANGUAGE", library: "LIBRARY"}
	var wrappers []listedLock
	for _, w := range strategies.Wrappers() {
		wrappers = append(wrappers, listedLock{name: w.Name + ":NAME", claims: w.Claims, idea: w.Summary})
	}
	var names, claims, languages, libraries int
	for _, l := range slices.Concat(slices.Concat(inGroups...), wrappers, []listedLock{head}) {
		names, claims = max(names, len(l.name)), max(claims, len(l.claims))
		languages, libraries = max(languages, len(l.language)), max(libraries, len(l.library))
	}
	wide := a.width()
	claims = min(claims, max(12, wide-names-languages-libraries-len("      ")))
	p := layout.Page{Wide: wide}
	write := func(l listedLock) {
		for i, text := range layout.Wrap(l.claims, claims, "") {
			if i == 0 {
				fmt.Fprintf(&p, "%-*s  %-*s  %-*s  %s\n", names, l.name, claims, text, languages, l.language, l.library)
			} else {
				fmt.Fprintf(&p, "%-*s  %s\n", names, "", text)
			}
		}
		if l.idea != "" {
			fmt.Fprintf(&p, "    %s\n", strings.Join(layout.Wrap(l.idea, wide-len("    "), ""), "\n    "))
		}
	}
	section := func(title string, locks []listedLock) {
		if len(locks) == 0 {
			return
		}
		p.Section(title, "")
		for _, l := range locks {
			write(l)
		}
	}
	write(head)
	for at, group := range groups {
		section(group.title, inGroups[at])
	}
	section("Wrappers", wrappers)
	p.WriteByte('\n')
	p.Remark("", "lockbench list NAME describes a strategy, with its options; lockbench list faults lists the faults, "+
		"lockbench drivers the locks in other languages.")
	return printed(p.Save(a.stdout, "list"))
}

// described returns a full description of each strategy, or an error that names every unknown strategy.
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
	// line adds one row per text and labels only the first row.
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
		fails = append(fails, fmt.Sprintf("the check %q, because %s", limit.Check, limit.Because))
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
		line("black box", "lockbench does not see its attempts and wake-ups")
	}
	if i.Doc != "" {
		var parser comment.Parser
		printer := comment.Printer{TextWidth: wide}
		text := strings.TrimSuffix(string(printer.Text(parser.Parse(i.Doc))), "\n")
		rows = append(rows, nil, []string{text})
	}
	return append(rows, describedOptions(i.Name, s.Options())...)
}

// pasteable splits an ACL SETUSER command that is wider than room into several. Each part adds to the user's rights, so
// the parts can be pasted one after another.
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
		return "none: the lock lives in the process"
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
	return strings.Join(parts, " and ") + ", besides the pool of the instance"
}

// rights prints the rights that a strategy's user needs: for Redis as an ACL SETUSER command, for another store as the
// store describes them.
func rights(line func(label string, texts ...string), i strategies.Info) {
	switch kind, err := store.Lookup(i.Store); {
	case i.OnRedis() && !i.Rights.Declared(): // an ACL command without rights would lock the strategy out
		line("ACL", "not declared")
	case i.OnRedis():
		texts := []string{
			i.Rights.SetUser("bench", engine.Prefix),
			"in a database other than 0 also +" + strategies.Selecting,
		}
		if len(i.Rights.Newer) > 0 {
			texts = append(texts, "if the server knows the command, also +"+strings.Join(i.Rights.Newer, " or +"))
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

// clusterRights returns the additional rights that the lock, its client and lockbench need in a cluster.
func clusterRights(r strategies.Rights) []string {
	var all []string
	for _, command := range slices.Concat(strategies.ConnectingCluster(), r.Cluster) {
		all = append(all, "+"+command)
	}
	return append(all, servers.ClusterRights()...)
}

// allFaults returns a table of the faults and options that --fault accepts.
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
		[][]string{nil, {"set with --fault holder-pause:at=2s,for=3s"}, {"docs/FAULTS.md has the details"}})
}
