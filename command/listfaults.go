package command

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/lockbench/lockbench/workloads"
)

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
