//go:build !redisonly

package command

// The surface consists of every name that users see, such as commands, flags and exit codes. TestSurface lists the
// names from the registries, so that each new name appears in the diff of testdata/surface.txt.

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/apps/claims"
	"github.com/lockbench/lockbench/internal/apps/selfcheck"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/render"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/workloads"
)

const surfaceIntro = `# Every name that users meet, out of the registries. To write this file again:
#
#     go test ./command -run TestSurface -update
#
# One in, one out: a change that adds a line says which line goes, or why none can.
`

// kindOfName is a section of testdata/surface.txt: its title, such as exit codes, and the names in it.
type kindOfName struct {
	title string
	names []string
}

func TestSurface(t *testing.T) {
	kinds := slices.Concat(ofCommands(), ofWorkloads(), ofStrategies(), ofResults(t), ofClaims(t),
		[]kindOfName{{"exit codes", ofExits(t)}})
	counts, sections := new(strings.Builder), new(strings.Builder)
	total := 0
	for _, kind := range kinds {
		if len(kind.names) == 0 {
			t.Errorf("there are no %s", kind.title)
		}
		total += len(kind.names)
		fmt.Fprintf(counts, "%5d %s\n", len(kind.names), kind.title)
		fmt.Fprintf(sections, "\n## %s\n%s\n", kind.title, strings.Join(kind.names, "\n"))
	}
	golden.Compare(t, "testdata/surface.txt", fmt.Sprintf("%s\n%s%5d in all\n%s", surfaceIntro, counts, total, sections))
}

// ofCommands returns three sections: the commands, their flags and their formats. It omits the flags of the root
// command, which equal those of run.
func ofCommands() []kindOfName {
	commands, flags, formats := kindOfName{title: "commands"}, kindOfName{title: "flags"}, kindOfName{title: "formats"}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, under := range cmd.Commands() {
			path := strings.TrimPrefix(under.CommandPath(), "lockbench ")
			commands.names = append(commands.names, path)
			under.Flags().VisitAll(func(flag *pflag.Flag) {
				name := path + " --" + flag.Name
				if flag.Shorthand != "" {
					name += " -" + flag.Shorthand
				}
				flags.names = append(flags.names, name)
				if out, is := flag.Value.(interface{ names() []string }); is {
					for _, format := range out.names() {
						formats.names = append(formats.names, name+" "+format)
					}
				}
			})
			visit(under)
		}
	}
	visit(Root())
	return []kindOfName{commands, flags, formats}
}

func ofWorkloads() []kindOfName {
	options, faults := kindOfName{title: "workload options"}, kindOfName{title: "faults"}
	faultOptions := kindOfName{title: "options of faults"}
	for _, field := range workloads.Fields() {
		options.names = append(options.names, field.Name)
	}
	for _, kind := range workloads.FaultKinds() {
		faults.names = append(faults.names, kind.Name)
		for _, o := range kind.Options() {
			faultOptions.names = append(faultOptions.names, kind.Name+":"+o.Name)
		}
	}
	return []kindOfName{options, {"workload presets", workloads.Presets()}, faults, faultOptions}
}

func ofStrategies() []kindOfName {
	options, wrappers := kindOfName{title: "options of strategies"}, kindOfName{title: "wrappers"}
	checks := kindOfName{title: "conformance checks"}
	for _, s := range strategies.All() {
		for _, o := range s.Options() {
			options.names = append(options.names, s.Info.Name+":"+o.Name)
		}
	}
	for _, w := range strategies.Wrappers() {
		wrappers.names = append(wrappers.names, w.Name)
	}
	for _, c := range locktest.Checks() {
		checks.names = append(checks.names, c.Name)
	}
	return []kindOfName{
		{"strategies", strategyNames()},
		options, wrappers,
		{"stores", store.Names()},
		checks,
		{"checks of selfcheck", selfcheck.Names()},
	}
}

func ofResults(t *testing.T) []kindOfName {
	t.Helper()
	metrics, bench := kindOfName{title: "metrics"}, kindOfName{title: "units of benchmark lines"}
	columns := kindOfName{title: "columns of tables"}
	for _, m := range results.Metrics() {
		metrics.names = append(metrics.names, m.Name)
	}
	for _, m := range results.BenchMetrics() {
		bench.names = append(bench.names, m.Bench.Unit)
	}
	groups := append(results.Groups(), results.PageGroup, results.ShortGroup, results.ShortRatioGroup)
	for _, group := range groups {
		for _, c := range results.Columns(group, nil) {
			columns.names = append(columns.names, fmt.Sprintf("%s: %s", group, c.Flat()))
		}
	}
	var table bytes.Buffer
	if err := render.WriteCSV(&table, &results.Report{}); err != nil {
		t.Fatal(err)
	}
	header, err := csv.NewReader(&table).Read()
	if err != nil {
		t.Fatal(err)
	}
	return []kindOfName{metrics, bench, columns, {"columns of CSV", header}}
}

func ofClaims(t *testing.T) []kindOfName {
	t.Helper()
	all, err := claims.All()
	if err != nil {
		t.Fatal(err)
	}
	titles, figures := kindOfName{title: "claims"}, kindOfName{title: "figures of claims"}
	for _, c := range all {
		titles.names = append(titles.names, fmt.Sprintf("%s %s", c.Name(), c.Says))
		for _, e := range c.Expect {
			figures.names = append(figures.names, fmt.Sprintf("%s %s", c.Name(), e.What))
		}
	}
	return []kindOfName{titles, figures}
}

// ofExits returns the exit codes in the help, and checks that they are the Exit constants.
func ofExits(t *testing.T) (names []string) {
	t.Helper()
	for _, e := range exitCodes {
		names = append(names, fmt.Sprintf("%d %s", e.Code, e.Meaning))
	}
	file, err := parser.ParseFile(token.NewFileSet(), "exit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := 0
	ast.Inspect(file, func(node ast.Node) bool {
		if value, is := node.(*ast.ValueSpec); is && strings.HasPrefix(value.Names[0].Name, "Exit") {
			constants++
		}
		return true
	})
	if constants != len(names) {
		t.Errorf("the help has %d exit codes of %d", len(names), constants)
	}
	return names
}
