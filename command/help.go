package command

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/layout"
)

const intro = `lockbench measures Redis distributed locks: it lets many clients fight for one lock by several
strategies and shows how fast each was, who waited, who starved, what Redis paid, and whether it
really excluded.`

const examples = `  lockbench --strategy spin,pubsub,blpop --clients 500
  lockbench -s 'spin:backoff=fixed,base=5ms,pubsub' --runs 5 -o table -o json=report.json
  LOCKBENCH_REDIS=rediss://user:secret@redis.example:6380 lockbench --strategy pubsub
  lockbench list pubsub`

const environment = "LOCKBENCH_CLIENTS=500 stands in for --clients 500, and so on for every flag: upper case, with " +
	"_ for -. Flags go before variables. NO_COLOR turns colours off. COLUMNS is the width without a terminal."

// exitCodes are those of the constants.
var exitCodes = [][]string{
	{"0", "measured, nothing wrong"},
	{"99", "a threshold was crossed"},
	{"104", "bad flags or configuration"},
	{"105", "interrupted, results so far are written"},
	{"110", "a regression (compare, ab)"},
	{"111", "a guarantee a strategy claims did not hold"},
	{"112", "figures that cannot be trusted, or that could not have shown what --strict asks"},
	{"113", "Redis unreachable"},
	{"130", "interrupted before there were results"},
	{"1", "anything else"},
}

// help returns the command of that name. Cobra's own ends with 0 for an unknown command.
func (a *app) help() *cobra.Command {
	return &cobra.Command{
		Use:               "help [COMMAND]",
		Short:             "Help about any command",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, words []string) error {
			about, rest, err := cmd.Root().Find(words)
			if err == nil {
				err = noWords(cmd, rest)
			}
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// explain writes a command's help, as wide as the terminal.
func (a *app) explain(cmd *cobra.Command, _ []string) {
	p := &layout.Page{Wide: a.width()}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short)), "\n\n") {
		if strings.HasPrefix(paragraph, "\t") || strings.HasPrefix(paragraph, " ") { // a command
			fmt.Fprintf(p, "%s\n\n", paragraph)
			continue
		}
		fmt.Fprintf(p, "%s\n\n", strings.Join(layout.Wrap(paragraph, p.Width(), ""), "\n"))
	}
	fmt.Fprintf(p, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(p, "  %s COMMAND\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		p.WriteString("\nExamples:\n")
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			example(p, strings.TrimSpace(line))
		}
	}
	if cmd.HasAvailableSubCommands() {
		p.WriteString("\nCommands:\n")
		var rows [][]string
		for _, one := range cmd.Commands() {
			if one.IsAvailableCommand() || one.Name() == "help" {
				rows = append(rows, []string{one.Name(), one.Short})
			}
		}
		p.Columns("  ", rows)
	}
	if cmd.HasAvailableLocalFlags() {
		p.WriteString("\nFlags:\n")
		writeFlags(p, cmd.LocalFlags().FlagUsages())
	}
	if cmd.Name() == "run" || !cmd.HasParent() {
		p.WriteString("\nEnvironment:\n")
		p.Remark("", environment)
		p.WriteString("\nExit codes:\n")
		p.Columns("  ", exitCodes)
	}
	_ = p.Save(cmd.OutOrStdout(), "help") // nothing else can be said of it
}

// usage takes a line of pflag's usages apart: the flag with its value, and what it means.
var usage = regexp.MustCompile(`(?m)^  (.*?\S) {3,}(\S.*)$`)

// writeFlags writes pflag's usages in two columns, on a narrow page each meaning below its flag.
func writeFlags(p *layout.Page, usages string) {
	var rows [][]string
	for _, found := range usage.FindAllStringSubmatch(usages, -1) {
		rows = append(rows, found[1:])
	}
	if p.Width() >= withoutTerminal {
		p.Columns("  ", rows)
		return
	}
	for _, row := range rows {
		meaning := layout.Wrap(row[1], p.Width()-len("        "), "")
		fmt.Fprintf(p, "  %s\n        %s\n", row[0], strings.Join(meaning, "\n        "))
	}
}

// example writes a command of a shell, which can still be pasted if it takes several lines. A comment that does not
// fit goes before it.
func example(p *layout.Page, line string) {
	room := p.Width() - len("  ")
	if layout.TextWidth(line) <= room {
		fmt.Fprintf(p, "  %s\n", line)
		return
	}
	command, comment, _ := strings.Cut(line, " # ")
	if comment != "" {
		fmt.Fprintln(p, "  "+strings.Join(layout.Wrap("# "+comment, room, "# "), "\n  "))
	}
	written := ""
	for _, word := range strings.Fields(command) {
		switch {
		case written == "":
			written = word
		case layout.TextWidth(written+" "+word+` \`) > room:
			fmt.Fprintf(p, "  %s \\\n", written)
			written = "  " + word
		default:
			written += " " + word
		}
	}
	fmt.Fprintf(p, "  %s\n", written)
}
