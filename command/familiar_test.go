package command

import (
	"strings"
	"testing"
)

// Every row of habits must apply to at least one command, name a tool, and propose only flags and formats that the
// command accepts.
func TestFlagsOfOtherTools(t *testing.T) {
	all := append(Root().Commands(), Root())
	seen := map[string]bool{}
	for _, habit := range habits {
		if habit.tool == "" || seen[habit.given+habit.here] {
			t.Errorf("--%s: no tool, or twice", habit.given)
		}
		seen[habit.given+habit.here] = true
		reached := false
		for _, cmd := range all {
			dashes := "--"
			if len(habit.given) == 1 {
				dashes = "-"
			}
			if dashes == "--" && cmd.Flags().Lookup(habit.given) != nil ||
				dashes == "-" && (cmd.Flags().ShorthandLookup(habit.given) != nil || habit.given == "h") {
				continue // this command has a flag of that name
			}
			if instead(cmd, habit.given) != habit.here {
				continue
			}
			reached = true
			args := append(strings.Fields(strings.TrimPrefix(cmd.CommandPath(), "lockbench")), dashes+habit.given)
			code, stdout, stderr := said(t, args...)
			want := "lockbench: " + dashes + habit.given + ": unknown flag, did you mean " + habit.here + "?\n"
			if code != ExitConfig || stdout != "" || stderr != want {
				t.Errorf("%q: exit code %d, printed %q, said %q, want %q", args, code, stdout, stderr, want)
			}
			if !accepts(cmd, habit.here) {
				t.Errorf("%s does not accept %s", cmd.CommandPath(), habit.here)
			}
		}
		if !reached {
			t.Errorf("no command proposes %s for %s", habit.here, habit.given)
		}
	}
	if len(habits) < 50 {
		t.Errorf("only %d rows", len(habits))
	}
}

// The error about an unknown flag must suggest a known flag that is at most two edits away, or one edit if the word is
// short.
func TestUnknownFlags(t *testing.T) {
	for _, test := range []struct{ line, says string }{
		{"--clinets 5", "--clinets: unknown flag, did you mean --clients?"},
		{"--hodl 5ms", "--hodl: unknown flag, did you mean --hold?"},
		{"--tll 5s", "--tll: unknown flag, did you mean --ttl?"},
		{"--htl 5s", "--htl: unknown flag, did you mean --ttl?"},
		{"--htmll 5s", "--htmll: unknown flag; lockbench --help lists the flags"},
		{"--counted", "--counted: unknown flag, did you mean --counter?"},
		{"--cluster", "--cluster: unknown flag, did you mean --topology cluster:3?"},
		{"observe --cluster", "--cluster: unknown flag; lockbench observe --help lists the flags"},
		{"report --json", "--json: unknown flag, did you mean --output json=FILE?"},
		{"report --html", "--html: unknown flag, did you mean --output html=FILE?"},
		{"observe --html", "--html: unknown flag, did you mean --output html=FILE?"},
		{"list --html", "--html: unknown flag, did you mean lockbench report run.json --output report.html?"},
		{"list --json", "--json: unknown flag; lockbench list --help lists the flags"},
		{"--redis-passwrod x", "--redis-passwrod: unknown flag; lockbench --help lists the flags"},
		{"-z", "-z: unknown flag; lockbench --help lists the flags"},
		{"compare -runs 5", "-runs: unknown flag; lockbench compare --help lists the flags"},
		{"record -max-workers 5", "-max-workers: unknown flag; lockbench record --help lists the flags"},
		{"list -max-workers 5", "-max-workers: unknown flag; lockbench list --help lists the flags"},
		{"claims -list", "-list: unknown flag, did you mean --list?"},
		{"advise -budget 5m", "-budget: unknown flag, did you mean --budget?"},
		{"5s", `unknown command "5s"; lockbench --help lists the commands`},
		{"lits", `unknown command "lits", did you mean lockbench list?`},
		{"diff", `unknown command "diff", did you mean lockbench compare?`},
		{"-duration=5s", "--duration: -duration is parsed as -d uration=5s, did you mean --duration?"},
		{"-rate=5/s", "--rate: -rate is parsed as -r ate=5/s, did you mean --rate?"},
		{"---x", `"---x" is not a flag: a flag has one dash and a letter, or two dashes and a name`},
		{"--clients", "--clients needs a value: --clients N"},
		{"-o", "--output needs a value: --output FORMAT"},
	} {
		code, stdout, stderr := said(t, strings.Fields(test.line)...)
		if code != ExitConfig || stdout != "" || stderr != "lockbench: "+test.says+"\n" {
			t.Errorf("%s: exit code %d, printed %q, said %q, want %q", test.line, code, stdout, stderr, test.says)
		}
	}
}
