package command

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/strategies"
)

// familiarLocks and familiarCommands map names of other libraries and tools, in lower case, to lockbench's names.
var (
	familiarLocks = map[string]struct{ here, because string }{
		"redisson":      {"pubsub", "Redisson's RLock; its others are fair, fenced, redisson-spin, semaphore"},
		"rlock":         {"pubsub", "Redisson's RLock"},
		"rfairlock":     {"fair", "Redisson's RFairLock"},
		"rfencedlock":   {"fenced", "Redisson's RFencedLock"},
		"rspinlock":     {"redisson-spin", "Redisson's RSpinLock"},
		"rsemaphore":    {"semaphore", "Redisson's RSemaphore"},
		"redis-py":      {"spin:backoff=fixed,base=100ms", "the nearest to redis-py's Lock, which is exec:redis-py"},
		"rueidis":       {"rueidislock", "its lock"},
		"bsm/redislock": {"redislock", "its package"},
	}
	familiarCommands = map[string]string{
		"ls": "list", "bench": "run", "benchmark": "run", "diff": "compare", "html": "report", "test": "check",
	}
)

// habits maps flags of other tools, written without dashes, to lockbench's equivalents. Each equivalent is either flags
// of the current command or a whole command line. If a flag is in several rows, lockbench proposes the first equivalent
// whose flags exist. Words in capitals are placeholders.
var habits = []struct{ given, tool, here string }{
	{"vus", "k6", "--clients 100"},
	{"users", "locust", "--clients 100"},
	{"threads", "wrk, memtier_benchmark", "--clients 100"},
	{"t", "wrk, memtier_benchmark", "--clients 100"},
	{"concurrency", "hey", "--clients 100"},
	{"connections", "wrk, vegeta", "--clients 100"},
	{"workers", "vegeta", "--clients 100"},
	{"max-workers", "vegeta", "--clients 100"},
	{"max-connections", "vegeta", "--pool 100"},
	{"processes", "locust", "--instances 4"},
	{"pods", "kubectl", "--instances 4"},

	{"requests", "memtier_benchmark", "--iterations 1000"},
	{"i", "k6", "--iterations 1000"},
	{"time", "siege", "--duration 30s"},
	{"test-time", "memtier_benchmark", "--duration 30s"},
	{"rps", "k6", "--rate 300/s"},
	{"R", "wrk2", "--rate 300/s"},
	{"rate-limiting", "memtier_benchmark", "--rate 300/s"},
	{"stages", "k6", "--stage 30s:100"},
	{"thresholds", "k6", "--threshold violations==0"},
	{"config", "k6", "--file FILE"},
	{"key-maximum", "memtier_benchmark", "--keys 16"},
	{"key-pattern", "memtier_benchmark", "--key-dist zipf:0.99"},
	{"parameter-list", "hyperfine", "--clients 10,100,500"},
	{"parameter-scan", "hyperfine", "--clients 10,100,500"},
	{"L", "hyperfine", "--clients 10,100,500"},
	{"P", "hyperfine", "--clients 10,100,500"},

	{"repeat", "perf stat", "--runs 6"},
	{"m", "hyperfine", "--runs 6"},
	{"M", "hyperfine", "--runs 6"},
	{"min-runs", "hyperfine", "--runs 6"},
	{"max-runs", "hyperfine", "--runs 6"},
	{"count", "go test", "--runs 6"},
	{"run-count", "memtier_benchmark", "--runs 6"},
	{"x", "memtier_benchmark", "--runs 6"},

	{"host", "redis-cli", "--redis HOST:PORT"},
	{"port", "redis-cli", "--redis HOST:PORT"},
	{"p", "redis-cli", "--redis HOST:PORT"},
	{"server", "memtier_benchmark", "--redis HOST:PORT"},
	{"uri", "memtier_benchmark", "--redis redis://HOST:PORT"},
	{"url", "k6", "--redis redis://HOST:PORT"},
	{"redis-url", "the variable of many services", "--redis redis://HOST:PORT"},
	{"redis-uri", "the variable of many services", "--redis redis://HOST:PORT"},
	{"redis-host", "the variable of many services", "--redis HOST:PORT"},
	{"redis-addr", "the variable of many services", "--redis HOST:PORT"},
	{"tls", "redis-cli, memtier_benchmark", "--redis rediss://HOST:PORT"},
	{"cacert", "redis-cli, memtier_benchmark", "--ca-file FILE"},
	{"insecure", "redis-cli, k6", "--ca-file FILE"},
	{"tls-skip-verify", "memtier_benchmark", "--ca-file FILE"},
	{"user", "redis-cli", "--redis redis://USER@HOST:PORT --redis-password-file FILE"},
	{"password", "psql", "--redis-password-file FILE"},
	{"pass", "redis-cli", "--redis-password-file FILE"},
	{"askpass", "redis-cli", "--redis-password-file FILE"},
	{"a", "redis-cli, memtier_benchmark", "--redis-password-file FILE"},
	{"authenticate", "memtier_benchmark", "--redis-password-file FILE"},
	{"socket", "redis-benchmark", "--redis unix:///PATH"},
	{"unix-socket", "memtier_benchmark", "--redis unix:///PATH"},
	{"S", "memtier_benchmark", "--redis unix:///PATH"},
	{"dbnum", "redis-benchmark", "--redis redis://HOST:PORT/1"},
	{"select-db", "memtier_benchmark", "--redis redis://HOST:PORT/1"},
	{"cluster", "redis-benchmark", "--topology cluster:3"},
	{"cluster-mode", "memtier_benchmark", "--topology cluster:3"},

	{"json", "redis-cli", "--output json=FILE"},
	{"csv", "redis-cli, redis-benchmark", "--output csv=FILE"},
	{"html", "locust", "--output html=FILE"},
	{"html", "locust", "lockbench report run.json --output report.html"},
	{"open", "cargo doc", "--live 5665"},
	{"open", "cargo doc", "--output html=FILE"},
	{"latency", "wrk, redis-cli", "--output tables"},
	{"out", "k6", "--output json=FILE"},
	{"summary-export", "k6", "--output json=FILE"},
	{"export-json", "hyperfine", "--output json=FILE"},
	{"export-csv", "hyperfine", "--output csv=FILE"},
	{"export-markdown", "hyperfine", "--output markdown=FILE"},
	{"json-out-file", "memtier_benchmark", "--output json=FILE"},
	{"out-file", "memtier_benchmark", "--output table=FILE"},
	{"hdr-file-prefix", "memtier_benchmark", "--output hgrm=FILE"},
	{"format", "vegeta, redis-benchmark", "--output json=FILE"},
	{"no-summary", "k6", "--quiet"},
}

// instead returns lockbench's equivalent of another tool's flag, or "" if there is none.
func instead(cmd *cobra.Command, given string) string {
	for _, habit := range habits {
		if habit.given == given && accepts(cmd, habit.here) {
			return habit.here
		}
	}
	return ""
}

// accepts reports whether cmd has the flags and output formats that line uses. If line begins with the program's name,
// accepts checks the command that line names instead of cmd.
func accepts(cmd *cobra.Command, line string) bool {
	words := strings.Fields(line)
	if words[0] == cmd.Root().Name() {
		found, rest, err := cmd.Root().Find(words[1:])
		if err != nil {
			return false
		}
		cmd, words = found, rest
	}
	for i, word := range words {
		name, isFlag := strings.CutPrefix(word, "--")
		if !isFlag {
			continue
		}
		flag := cmd.Flags().Lookup(name)
		if flag == nil {
			return false
		}
		if out, is := plainValue(flag).(interface{ accepts(string) bool }); is && !out.accepts(words[i+1]) {
			return false
		}
	}
	return true
}

// plainValue returns the value of a flag without its patient wrapper.
func plainValue(flag *pflag.Flag) pflag.Value {
	if p, is := flag.Value.(*patient); is {
		return p.Value
	}
	return flag.Value
}

// misused rewords a parse error of pflag and adds the flag that the user probably meant.
func misused(cmd *cobra.Command, err error) error {
	if missing, is := errors.AsType[*pflag.ValueRequiredError](err); is {
		flag := missing.GetFlag()
		kind, _ := pflag.UnquoteUsage(flag)
		return fmt.Errorf("--%s needs a value: --%s %s", flag.Name, flag.Name, strings.ToUpper(kind))
	}
	if wrong, is := errors.AsType[*pflag.InvalidSyntaxError](err); is {
		return fmt.Errorf("%q is not a flag: a flag has one dash and a letter, or two dashes and a name",
			wrong.GetSpecifiedFlag())
	}
	unknown, is := errors.AsType[*pflag.NotExistError](err)
	if !is {
		return err
	}
	name, dashes := unknown.GetSpecifiedName(), "--"
	meant := instead(cmd, name)
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		dashes = "-"
		if whole, _, _ := strings.Cut(letters, "="); len(whole) > 1 { // a long name after a single dash, as in vegeta
			letter := meant
			if meant = instead(cmd, whole); cmd.Flags().Lookup(whole) != nil {
				meant = "--" + whole
			}
			meant, name = cmp.Or(meant, letter), whole
		}
	} else if near := words.Near(name, visible(cmd.Flags())); meant == "" && near != "" {
		meant = "--" + near
	}
	if meant == "" {
		return fmt.Errorf("%s%s: unknown flag; %s --help lists the flags", dashes, name, cmd.CommandPath())
	}
	return fmt.Errorf("%s%s: unknown flag, did you mean %s?", dashes, name, meant)
}

// visible returns the names of the flags that help shows.
func visible(set *pflag.FlagSet) (names []string) {
	set.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	return names
}

// recognised replaces names of other libraries' locks with the strategies that measure them, and returns a note for
// each replacement. If drivers is set, it also adds the prefix exec: to a driver's bare name.
func recognised(lists []string, drivers bool) (known, notes []string) {
	for _, list := range lists {
		before, rest := driver.Cut(list)
		parts := strings.Split(before, ",")
		if strings.HasPrefix(rest, "+") { // the last part before the + is mixed with a driver
			last := len(parts) - 1
			parts, rest = parts[:last], ","+parts[last]+rest
		} else if before == "" && rest != "" {
			parts = nil
		}
		var all, found []string
		for _, part := range parts {
			name := strings.TrimSpace(part)
			lock, familiar := familiarLocks[strings.ToLower(name)]
			_, isDriver := driver.All()[name]
			isDriver = isDriver && drivers
			switch _, err := strategies.Lookup(name); {
			case err == nil, !familiar && !isDriver:
				all = append(all, part)
			case isDriver:
				found = append(found, driver.Prefix+name)
				notes = append(notes, fmt.Sprintf("%s is measured as %s%s", name, driver.Prefix, name))
			default:
				all = append(all, lock.here)
				notes = append(notes, fmt.Sprintf("%s is measured as %s: %s", name, lock.here, lock.because))
			}
		}
		if rest != "" {
			all = append(all, strings.TrimPrefix(rest, ","))
		}
		known = append(known, strings.Join(append(all, found...), ","))
	}
	return known, notes
}
