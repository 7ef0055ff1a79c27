package command

// This file has the tables of environment variables, files and exit codes. The manual page prints all of them, help
// prints the first variables and the exit codes, and docs/ERRORS.md quotes the exit codes.

import (
	"fmt"

	"github.com/lockbench/lockbench/internal/driver"
)

// Section is a section of the manual page that lockbench adds to those of cobra.
type Section struct {
	Title   string
	Entries []Entry
}

// Entry is one row of a section, such as an environment variable with its meaning.
type Entry struct{ Name, Meaning string }

// Manual returns the sections of the manual page that cobra does not generate.
func Manual() []Section {
	var codes []Entry
	for _, e := range exitCodes {
		codes = append(codes, Entry{fmt.Sprint(e.Code), e.detail()})
	}
	return []Section{{"ENVIRONMENT", variables()}, {"FILES", usedFiles}, {"EXIT STATUS", codes}}
}

// variablesOfHelp is the number of variables that the help prints, from the start of the list.
const variablesOfHelp = 3

func variables() []Entry {
	return []Entry{
		{"LOCKBENCH_FLAG", "sets --flag. The name is in upper case, with _ for -: LOCKBENCH_CLIENTS=500 sets " +
			"--clients 500. A flag overrides its variable."},
		{"NO_COLOR", "turns colours off."},
		{"COLUMNS", "is the width of the output without a terminal (default 80)."},
		{"LOCKBENCH_REDIS_PASSWORD, REDISCLI_AUTH", "is the password of Redis, for addresses without one."},
		{"LOCKBENCH_ETCD_USER, LOCKBENCH_ETCD_PASSWORD", "are the credentials of etcd."},
		{"LOCKBENCH_ZK_AUTH", "is the user and password of ZooKeeper, separated by a colon."},
		{"PGPASSWORD", "is the password of PostgreSQL."},
		{"LOCKBENCH_REDIS_SERVER", "is the server program that --redis process starts (default redis-server, else " +
			"valkey-server)."},
		{driver.PathVariable, "lists directories in which lockbench searches for drivers before its own directories."},
		{"JOB_COMPLETION_INDEX", "is the default of --generator. Kubernetes sets it in an Indexed Job."},
		{"GITHUB_SHA, CI_COMMIT_SHA", "is the commit that a report names if the build does not know it."},
		{"TMPDIR", "is the directory for temporary files (default /tmp)."},
	}
}

var usedFiles = []Entry{
	{"RUN.json", "is a report: -o json=RUN.json writes it; report and compare read it."},
	{"FILE.yaml of --file", "has a line for each flag that it sets."},
	{"FILE.yaml of --workload", "has a line for each option of a workload that it sets."},
	{"FILE of --redis-password-file", "has the password of Redis."},
	{"drivers/", "has drivers of locks in other languages. lockbench searches for it in the directory of the program " +
		"and in the parent directory."},
	{"$TMPDIR/lockbench-server-*, $TMPDIR/lockbench-container-*", "have the data of servers that lockbench starts. " +
		"lockbench removes them at its end, and lockbench clean removes those of a killed lockbench."},
}

// exitMeaning is an exit code with a short meaning for the help and, if needed, a longer one for the manual page and
// docs/ERRORS.md.
type exitMeaning struct {
	Code    int
	Meaning string
	more    string // for the manual page and docs/ERRORS.md; "" if Meaning is enough
}

// detail returns the longer meaning or, if there is none, the short one.
func (e exitMeaning) detail() string {
	if e.more != "" {
		return e.more
	}
	return e.Meaning
}

// exitCodes explains every Exit constant.
var exitCodes = []exitMeaning{
	{ExitOK, "measured, nothing wrong", ""},
	{ExitFailure, "anything else", "anything else, such as a full disk"},
	{ExitThreshold, "a threshold was crossed", "a threshold was crossed or could not be judged, or a counter-case failed"},
	{ExitConfig, "bad flags or configuration", "bad flags, environment or files, or something is missing on the server, " +
		"which `lockbench doctor` names; nothing was measured or written"},
	{ExitInterrupted, "interrupted, results so far are written", "interrupted (Ctrl-C, SIGTERM, SIGHUP); the results so " +
		"far are written. After another signal over 500 ms later, or 8 s after SIGTERM, lockbench writes only the runs and " +
		"claims that had ended"},
	{ExitRegression, "a regression (compare, ab)", ""},
	{ExitSafety, "a guarantee a strategy claims did not hold", "a guarantee that a strategy claims did not hold"},
	{ExitInvalid, "figures that cannot be trusted, or undecided", ""},
	{ExitUnreachable, "Redis unreachable", "Redis could not be reached, or no longer replied; the results so far are " +
		"written"},
	{ExitStopped, "interrupted before there were results", "interrupted before there were results: nothing is written"},
}
