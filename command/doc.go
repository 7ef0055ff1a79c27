// Package command is lockbench's command line. The author of a lock registers a
// strategy and calls Main:
//
//	func main() {
//		os.Exit(command.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
//	}
//
// Read the files in this order:
//
//   - command.go: Main, the root command, and how errors are printed. exit.go: the exit codes. interrupt.go: how
//     signals end a command.
//   - plan.go: the flags of a run, which define a lockbench.Plan. input.go: the sources of their values, which are
//     flags, variables and workload files. familiar.go: flags and names of other tools.
//   - output.go: the flag --output of all commands, and how files are written (output_unix.go, output_other.go).
//     terminal.go: the progress of a run, and the terminal's width. help.go: the template of the help. manual.go:
//     the tables of variables, files and exit codes, for the help and the manual page.
//   - files.go: reads reports. child.go: executes runs in child processes (child_unix.go, child_other.go).
//   - run.go: the command that measures, both root and run. Each further file has one command or several related ones:
//     list.go, doctor.go, reports.go, compare.go (with the flags of the gate, which ab shares), ab.go, record.go,
//     claims.go, advise.go, limits.go, check.go, checks.go (selfcheck and clean), observe.go.
//
// The file of a command has, in this order, its flags, the command and the functions that it calls.
package command
