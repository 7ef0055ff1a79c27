package command

// Cobra renders the help with helpTemplate. The help shows flags in groups. A group is a pflag.FlagSet whose name is
// the heading. Flags without a group are shown first. Paragraphs are wrapped to the terminal's width. Examples and
// short descriptions are not wrapped and must fit 60 columns.

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/layout"
)

const intro = "lockbench measures Redis distributed locks. Many clients compete for one lock by several strategies; " +
	"for each strategy it reports speed, waits, starved clients, the cost to Redis and whether the lock excluded."

const examples = `  lockbench --strategy spin,pubsub,blpop --clients 500
  lockbench -s 'spin:backoff=fixed,base=5ms,pubsub' \
    --runs 5 -o table -o json=report.json
  LOCKBENCH_REDIS=rediss://user:secret@redis.example:6380 \
    lockbench --strategy pubsub
  lockbench list pubsub`

const helpTemplate = `{{paragraphs . (or .Long .Short)}}

Usage:
  {{.UseLine}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}
{{- if .HasExample}}

Examples:
{{.Example}}{{end}}
{{- if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if or .IsAvailableCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}
{{- range flagGroups .}}

{{.Name}}:
{{.FlagUsagesWrapped (columns $) | trimTrailingWhitespaces}}{{end}}
{{- if or (not .HasParent) (eq .Name "run")}}

Environment:
{{environment .}}

Exit codes:{{range exitCodes}}
  {{printf "%-5d%s" .Code .Meaning}}{{end}}{{end}}
`

func init() {
	cobra.AddTemplateFuncs(map[string]any{
		"paragraphs": paragraphs, "columns": columns, "flagGroups": flagGroups,
		"exitCodes": func() any { return exitCodes }, "environment": environment,
	})
}

// columns returns the width of a command's help, in columns. This is the terminal's width, but at most layout.Width.
func columns(cmd *cobra.Command) int { return min(width(cmd.OutOrStdout()), layout.Width) }

// environment returns the lines of the help that explain the first variablesOfHelp environment variables, wrapped and
// indented.
func environment(cmd *cobra.Command) string {
	var lines []string
	for _, v := range variables()[:variablesOfHelp] {
		lines = append(lines, layout.Wrap(v.Name+" "+v.Meaning, columns(cmd)-len("  "), "  ")...)
	}
	return "  " + strings.Join(lines, "\n  ")
}

// paragraphs wraps a text of the help. It does not wrap an indented paragraph, which is a command line.
func paragraphs(cmd *cobra.Command, text string) string {
	all := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, paragraph := range all {
		if !strings.HasPrefix(paragraph, "\t") && !strings.HasPrefix(paragraph, " ") {
			all[i] = strings.Join(layout.Wrap(paragraph, columns(cmd), ""), "\n")
		}
	}
	return strings.Join(all, "\n\n")
}

// heading is the key of the flag annotation that holds the name of the flag's group.
const heading = "lockbench_heading"

// group returns an empty set for the flags below one heading of the help; name is the heading. The help lists the flags
// of a set in the order in which they were added.
func group(name string) *pflag.FlagSet {
	set := pflag.NewFlagSet(name, pflag.ContinueOnError)
	set.SortFlags = false
	return set
}

// addGroups adds the flags of each group to a command's set and annotates them with the group's name.
func addGroups(set *pflag.FlagSet, groups ...*pflag.FlagSet) {
	for _, g := range groups {
		g.VisitAll(func(flag *pflag.Flag) { flag.Annotations = map[string][]string{heading: {g.Name()}} })
		set.AddFlagSet(g)
	}
}

// flagGroups returns a command's flags by group. The flags without a group come first.
func flagGroups(cmd *cobra.Command) []*pflag.FlagSet {
	groups := []*pflag.FlagSet{group("Flags")}
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		at := 0
		if names := flag.Annotations[heading]; len(names) > 0 {
			at = slices.IndexFunc(groups, func(g *pflag.FlagSet) bool { return g.Name() == names[0] })
			if at < 0 {
				at, groups = len(groups), append(groups, group(names[0]))
			}
		}
		groups[at].AddFlag(flag)
	})
	return groups
}

// help returns the command help. It replaces cobra's, which exits with 0 for an unknown command.
func help() *cobra.Command {
	return &cobra.Command{
		Use:               "help [COMMAND]",
		Short:             "Help about any command",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, words []string) error {
			about, rest, err := cmd.Root().Find(words)
			if err == nil {
				err = rejectArguments(cmd, rest)
			}
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
