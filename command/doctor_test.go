package command_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/apps/doctor"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

var session = regexp.MustCompile(`\{` + store.IDPattern + ":")

// registered removes from a comma-separated list the strategies that are not registered in this program.
func registered(list string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(list, ","), func(name string) bool {
		_, err := strategies.Lookup(name)
		return err != nil
	}), ",")
}

// examine runs doctor and returns its exit code and findings.
func examine(t *testing.T, args ...string) (code int, found doctor.Document) {
	t.Helper()
	code, stdout, stderr := run(t, append([]string{"doctor", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &found); err != nil {
		t.Fatalf("doctor ended with %d: %v\n%s%s", code, err, stdout, stderr)
	}
	return code, found
}

// If the server does not meet a requirement of lockbench or of a strategy, doctor must report the same problems as a
// run, and the run must list all of them before it measures anything.
func TestDoctorMatchesPreflight(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		server     []string // arguments of redis-server
		without    string   // ACL rules that remove rights from a user with all rights
		database   string
		strategies string
		says       []string
	}{
		{
			nil, "-client|setname", "", "spin,pubsub",
			[]string{"0 of 2 strategies", "lockbench needs the right +client|setname", "SETUSER bench +client|setname"},
		},
		{
			nil, "-client|setname -time -set", "", "handoff,spin", // all at once, though no connection can be opened
			[]string{"needs the right +client|setname", "handoff needs the rights +time +set", "spin needs the right +set"},
		},
		{nil, "-ping", "", "setnx", []string{"lockbench needs the right +ping"}},
		{nil, "-select", "/3", "setnx", []string{"lockbench needs the right +select"}},
		{nil, "-time", "", "handoff,spin", []string{"1 of 2 strategies", "handoff needs the right +time"}},
		{
			nil, "-set", "", "redsync,rueidislock,spin,setnx",
			[]string{"1 of", "redsync needs the right +set", "spin needs the right +set", "SETUSER bench +set"},
		},
		{nil, "-setnx -del", "", "setnx", []string{"0 of 1 strategies", "setnx needs the rights +del +setnx"}},
		{nil, "-publish", "", "pubsub,spin", []string{"1 of 2 strategies", "pubsub needs the right +publish"}},
		{nil, "-subscribe", "", "pubsub", []string{"pubsub needs the right +subscribe"}},
		{nil, "-ssubscribe -spublish", "", "handoff", []string{"handoff needs the rights +spublish +ssubscribe"}},
		{nil, "resetchannels", "", "pubsub", []string{"pubsub needs the right &redisson_lock__channel:*lockbench:*"}},
		{nil, "resetkeys", "", "fair,spin", []string{
			"fair needs the rights ~lockbench:* ~redisson_lock_queue:", "spin needs the right ~lockbench:*",
		}},
		{nil, "-evalsha", "", "spin", []string{"spin needs the right +evalsha"}},
		{nil, "-script|load", "", "spin", []string{"spin needs the right +script|load"}},
		{nil, "-set -publish resetchannels", "", "pubsub,spin", []string{
			"pubsub needs the rights +publish &redisson_lock__channel:*lockbench:*", "spin needs the right +set",
		}},
		{nil, "-hincrby -lpop -zadd", "", "fair", []string{"fair needs the rights +lpop +hincrby +zadd"}},
		{
			[]string{"--rename-command", "DEL", ""},
			"", "", "spin,redsync,redislock,setnx",
			[]string{"0 of 4 strategies", "spin needs DEL, which the server does not have", "restore DEL on the server"},
		},
		{
			[]string{"--rename-command", "SET", ""},
			"", "", "redsync,rueidislock,redislock",
			[]string{"1 of", "redsync needs SET, which the server does not have"},
		},
		{
			[]string{"--rename-command", "CLIENT", ""},
			"", "", "spin",
			[]string{"0 of 1 strategies", "lockbench needs CLIENT SETNAME, which the server does not have"},
		},
		{[]string{"--rename-command", "EVAL", ""}, "", "", "spin,setnx", []string{"1 of 2", "spin needs EVAL, which"}},
		{[]string{"--maxmemory", "1"}, "", "", "spin", []string{"0 of 1 strategies", "spin could not", "OOM"}},
		{nil, "", "", "spin,pubsub,handoff", nil},
	} {
		name := strings.Join(append(test.server, test.without), " ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, test.server...)
			rules := []any{"ACL", "SETUSER", "bench", "on", ">secret", "~*", "&*", "+@all"}
			for rule := range strings.FieldsSeq(test.without) {
				rules = append(rules, rule)
			}
			set(t, server, rules...)
			file := filepath.Join(t.TempDir(), "report.json")
			at := []string{
				"-u", "redis://bench:secret@" + server.Addr + test.database, "-s", registered(test.strategies),
			}
			code, found := examine(t, at...)
			var want, all []string
			for _, symptom := range found.Symptoms {
				if symptom.State != results.Trouble {
					continue
				}
				for _, text := range symptom.Says {
					want = append(want, "lockbench: "+text)
				}
				for _, next := range symptom.Next {
					want = append(want, "lockbench: next: "+next)
				}
			}
			runCode, _, stderr := run(t, append(at, "-c", "4", "-n", "10", "-w", "0s", "-q", "-o", "json="+file)...)
			if test.says == nil {
				if code != command.ExitOK || runCode != command.ExitOK && runCode != command.ExitInvalid {
					t.Errorf("doctor ended with %d, the run with %d: %s %+v", code, runCode, stderr, found.Symptoms)
				}
				return
			}
			for line := range strings.Lines(stderr) {
				all = append(all, strings.TrimSpace(line))
			}
			for _, lines := range [][]string{want, all} { // doctor and the run have different session IDs
				for i := range lines {
					lines[i] = session.ReplaceAllString(lines[i], "{ID:")
				}
				slices.Sort(lines)
			}
			if code != command.ExitConfig || runCode != command.ExitConfig || !slices.Equal(want, all) {
				t.Errorf("doctor ended with %d and said\n%s\nthe run ended with %d and said\n%s", code,
					strings.Join(want, "\n"), runCode, strings.Join(all, "\n"))
			}
			for _, says := range test.says {
				if !strings.Contains(strings.Join(all, "\n"), says) {
					t.Errorf("neither says %q:\n%s", says, strings.Join(all, "\n"))
				}
			}
			if keys := server.Client(t).Keys(t.Context(), "*").Val(); len(keys) > 0 && !strings.Contains(name, "DEL") {
				t.Errorf("left %v", keys)
			}
		})
	}
}

// Some rights are needed only for the measurement of a single figure. If the Redis user lacks such a right, the run
// must continue, doctor must note the missing figure, and the report must warn of it.
func TestMissingRightForFigureIsAWarning(t *testing.T) {
	t.Parallel()
	server, file := redistest.Start(t), filepath.Join(t.TempDir(), "report.json")
	set(t, server, "ACL", "SETUSER", "bench", "on", ">secret", "~*", "&*", "+@all", "-info", "-scan", "-client|list")
	at := []string{"-u", "redis://bench:secret@" + server.Addr}
	code, found := examine(t, at...) // every strategy, each with the keys that the others may have left
	if keys := server.Client(t).Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("a user who may not look for keys left %v", keys)
	}
	if i := slices.IndexFunc(found.Symptoms, func(s results.Symptom) bool { return s.Name == "figures" }); code != 0 ||
		i < 0 || found.Symptoms[i].State != results.Note || len(found.Symptoms[i].Says) != 3 ||
		!strings.Contains(strings.Join(found.Symptoms[i].Next, ""), "ACL SETUSER bench +info +client|list +scan") {
		t.Errorf("doctor ended with %d: %+v", code, found.Symptoms)
	}
	code, _, stderr := run(t, append(at, "-s", "setnx", "-c", "2", "-n", "10", "-w", "0s", "-q", "-o", "json="+file)...)
	if code != command.ExitOK && code != command.ExitInvalid {
		t.Fatalf("the run ended with %d: %s", code, stderr)
	}
	warnings := readReport(t, file).Warnings.String()
	for _, want := range []string{
		"without +info CPU time", "without +scan leftover keys", "without +client|list subscriptions",
	} {
		if !strings.Contains(warnings, want) {
			t.Errorf("the report does not warn %q: %s", want, warnings)
		}
	}
}

// Some commands are needed only for the measurement of a single figure. If the server lacks such a command, doctor must
// note the missing figure and exit with 0.
func TestMissingCommandForFigureIsNoted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--rename-command", "DEL", "", "--rename-command", "CONFIG", "")
	code, found := examine(t, "-u", server.URL(), "-s", "semaphore") // semaphore deletes nothing
	i := slices.IndexFunc(found.Symptoms, func(s results.Symptom) bool { return s.Name == "figures" })
	if i < 0 || code != command.ExitOK || found.Symptoms[i].State != results.Note ||
		!slices.Equal(found.Symptoms[i].Says, []string{
			"without CONFIG GET I/O threads, durability and, before Redis 7, the connection limit are not known",
			"without DEL leftover keys are not deleted",
		}) {
		t.Errorf("doctor ended with %d: %+v", code, found.Symptoms)
	}
}

// If no server listens at the address, doctor must still write a document, which must give the next step.
func TestDoctorWithoutAServer(t *testing.T) {
	t.Parallel()
	code, found := examine(t, "-u", "redis://127.0.0.1:1")
	if code != command.ExitUnreachable || len(found.Symptoms) != 1 || found.Symptoms[0].Name != "reachable" ||
		found.Symptoms[0].State != results.Trouble || len(found.Symptoms[0].Next) == 0 {
		t.Errorf("where nothing listens it ended with %d: %+v", code, found)
	}
}

// doctor must note an eviction policy, because it can delete locks, and snapshots, because they distort figures. Each
// note must give the next step.
func TestDoctorNotesEvictionsAndSnapshots(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru", "--save", "3600 1")
	code, found := examine(t, "-u", server.URL())
	var names []string
	for _, s := range found.Symptoms {
		names = append(names, s.Name)
		if want := map[string]string{"memory": "allkeys-lru", "snapshots": "save 3600 1"}[s.Name]; want != "" &&
			(s.State != results.Note || !strings.Contains(s.Says[0], want) || len(s.Next) == 0) {
			t.Errorf("%s is %+v, want a note of %q", s.Name, s, want)
		}
	}
	if all := strings.Join(names, " "); code != 0 || all != "reachable server limits rights figures memory snapshots" {
		t.Errorf("it ended with %d, looked at are %s", code, all)
	}
}
