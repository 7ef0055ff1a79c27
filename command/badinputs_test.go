package command

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/internal/testkit/golden"
)

// badInput is a command line that lockbench must reject, with the exit code that it must return.
type badInput struct {
	line string // arguments, in single quotes if they contain spaces, after VARIABLE=value settings
	code int
}

// aboutStores is a heading in badInputs. For the inputs below it, a program that is built with the tag redisonly prints
// different messages.
const aboutStores = "Other stores"

// badInputs lists the bad inputs by topic. The test runs them in a directory with the files that prepareBadInputs
// writes.
var badInputs = []struct {
	about string
	lines []badInput
}{
	{"Flags and words", []badInput{
		{"lockbench --clinets 5", 104},
		{"lockbench --clinets=9", 104},
		{"lockbench -qz", 104},
		{"lockbench -duration=5s", 104},
		{"lockbench ---x", 104},
		{"lockbench --zzz", 104},
		{"lockbench --hodl 5ms", 104},
		{"lockbench --tll 5s", 104},
		{"lockbench --clients", 104},
		{"lockbench lits", 104},
		{"lockbench pubsub", 104},
		{"lockbench ls", 104},
		{"lockbench help lits", 104},
		{"lockbench redis://127.0.0.1:7001 nope", 104},
		{"lockbench version extra", 104},
		{"lockbench clean extra", 104},
		{"lockbench --host localhost --port 6379", 104},
		{"lockbench --vus 10", 104},
		{"lockbench --connections 10", 104},
		{"lockbench --pods 10", 104},
		{"lockbench --html", 104},
		{"lockbench --open", 104},
		{"lockbench --cluster", 104},
		{"lockbench --tls", 104},
		{"lockbench --user me", 104},
		{"lockbench --password secret", 104},
		{"lockbench --config bench.yaml", 104},
		{"lockbench --repeat 5", 104},
		{"lockbench --json", 104},
		{"lockbench --csv", 104},
		{"lockbench -t 10", 104},
		{"lockbench -p 6379", 104},
		{"lockbench -a secret", 104},
		{"lockbench -R 100", 104},
		{"lockbench -P 10", 104},
		{"lockbench list --cert me.pem", 104},
		{"lockbench compare -max-workers 10", 104},
		{"lockbench --clients many", 104},
		{"lockbench --clients 0", 104},
		{"lockbench --clients 10 --instances 11", 104},
		{"lockbench --clients 5,5", 104},
		{"lockbench --keys -1", 104},
		{"lockbench --runs 0", 104},
		{"lockbench --runs 1.5", 104},
		{"lockbench --seed 99999999999999999999", 104},
		{"lockbench --no-baselines=maybe", 104},
		{"lockbench --clients 0 --keys 0 more", 104},
		{"lockbench --clients -5 --keys 0 --ttl 0 --timeout -1s --seed 99999999999999999999", 104},
		{"lockbench --clients abc --hold 5x -q --runs=-1 --no-baselines=maybe -s spni -u redis://127.0.0.1:1", 104},
		{"LOCKBENCH_CLIENTS=x lockbench", 104},
		{"LOCKBENCH_REDIS= lockbench", 104},
		{"LOCKBENCH_CLEINTS=5 lockbench", 104},
		{"LOCKBENCH_REDSI=redis://127.0.0.1:1 LOCKBENCH_REDIS_URL=redis://127.0.0.1:1 lockbench", 104},
		{"lockbench --redis=", 104},
		{"lockbench --rate 0", 104},
		{"lockbench -n 100 -d 5s", 104},
		{"lockbench --metrics prometheus --live 127.0.0.1", 104},
		{"LOCKBENCH_LIVE=99999 lockbench", 104},
		{"LOCKBENCH_THRESHOLD=violations lockbench", 104},
		{"lockbench --metrics 203.0.113.1:9464", 104},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318 OTEL_METRIC_EXPORT_INTERVAL=2s lockbench --metrics otlp", 104},
		{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc lockbench --metrics otlp", 104},
	}},
	{"Workloads", []badInput{
		{"lockbench --hold 5", 104},
		{"lockbench --hold uniform:5ms,1ms", 104},
		{"lockbench --hold uniform:5ms", 104},
		{"lockbench --hold lognormal:5ms,99", 104},
		{"lockbench --hold normal:5ms", 104},
		{"lockbench --hold -1ms", 104},
		{"lockbench --hold file: --think lognormal:5ms", 104},
		{"lockbench --hold file:none.txt", 104},
		{"lockbench --hold file:words.txt", 104},
		{"lockbench --think 1ms --rate 100/s", 104},
		{"lockbench --rate 100/day", 104},
		{"lockbench --arrivals regular", 104},
		{"lockbench --arrivals file:none", 104},
		{"lockbench --arrivals file:words.txt --stage 1s:5/s", 104},
		{"lockbench --key-dist zipf", 104},
		{"lockbench --key-dist hotspot:2/1", 104},
		{"lockbench --ttl 0", 104},
		{"lockbench --pool -1 --warmup -1s --iterations -1 --instances -1", 104},
		{"lockbench --timeout -1s", 104},
		{"lockbench --duration 0s", 104},
		{"lockbench --work sleeep", 104},
		{"lockbench --release later --row locked", 104},
		{"lockbench --work counter --release after-commit --row version", 104},
		{"lockbench --fence some", 104},
		{"lockbench --stage 30s", 104},
		{"lockbench --stage 500:30s", 104},
		{"lockbench --stage 1s:500 --clients 10", 104},
		{"lockbench --stage 1s:500 --iterations 10", 104},
		{"lockbench --burst 1s --clients 1", 104},
		{"lockbench --burst 20s --clients 5", 104},
		{"lockbench --workload nowhere.yaml", 104},
		{"lockbench --workload odd.yaml", 104},
		{"lockbench --workload zipf --workload-file x", 104},
		{"lockbench -f none.yaml", 104},
		{"lockbench -f bench.yaml", 104},
		{"lockbench -f load.yaml -o json=load.yaml", 104},
	}},
	{"Strategies, faults and thresholds", []badInput{
		{"lockbench -s spni", 104},
		{"lockbench -s gated:sipn,SPIM,gatet:spin:base=1ms,zzzzzzzzzz", 104},
		{"lockbench -s spin:bse=3ms", 104},
		{"lockbench -s spin:base=soon", 104},
		{"lockbench -s pubsb,spin:bse=3 -s spin:base=soon,nothing-like-it", 104},
		{"lockbench -s base=5ms -s noop:x=1,pubsub:watchdog=maybe,spin:base=5ms,base=6ms", 104},
		{"lockbench -s spin:backoff=linear,base=5,cap=-1s,x", 104},
		{"lockbench -s pubsub+redisson-spin,fair+fenced,semaphore+semaphore:permits=2,local+local", 104},
		{"lockbench -s redlock", 104},
		{"lockbench -s redlock --topology cluster:3", 104},
		{"lockbench -s local --fault holder-crash", 104},
		{"lockbench -s atomic", 104},
		{"lockbench -s spin,exec:nothing", 104},
		{"lockbench -s exec:/bin/false", 104},
		{"lockbench -s pubsub+spin,+fair,spin+backoff=none", 104},
		{"lockbench -s pubsub+gated:pubsub -c 1", 104},
		{"lockbench check pubsub+gated:pubsub", 104},
		{"lockbench check spin --only luck", 104},
		{"lockbench check", 104},
		{"lockbench advise -c 100000 --hold 1h --dry-run", 104},
		{"lockbench --fault hodler-crash", 104},
		{"lockbench --fault holder-crash:at=9s", 104},
		{"lockbench --fault holder-pause:dwon=3,fo=1s,at=x --fault waiter-crash:n=0,at=9s", 104},
		{"lockbench --fault failover", 104},
		{"lockbench -s spin --fault failover:lag=1s --fault node-down:node=4,n=2 --fault kill:node=2", 104},
		{"lockbench --fault kill --fault script-flush -u redis://127.0.0.1:1", 104},
		{"lockbench --threshold 'wait:p(99)'", 104},
		{"lockbench --threshold 'wait<5ms' --threshold 'wait:p99<5ms' --threshold 'wait:p(101)<5ms'", 104},
		{"lockbench --threshold 'wait:p(99)<5' --threshold 'acq_per_s>800/m' --threshold violations==none", 104},
		{"lockbench --threshold violations:max==0 --threshold 'bytes_in_per_acq<2kilo' --threshold a=1", 104},
		{"lockbench -s spin --threshold 'violations{strategy:pubsub}==0' --threshold 'violations{clients:5}==0'", 104},
		{"lockbench --threshold 'wiat:p(99)<5ms'", 104},
	}},
	{"Redis", []badInput{
		{"lockbench -u somewhere", 104},
		{"lockbench -u process:none --dry-run", 104},
		{"lockbench -u redis://127.0.0.1:1?pool_size=3", 104},
		{"lockbench -u redis://me:secret@127.0.0.1:1x", 104},
		{"lockbench -u redis://127.0.0.1:1", 113},
		{"lockbench --ca-file none.pem -u rediss://127.0.0.1:1", 104},
		{"lockbench --ca-file words.txt -u rediss://127.0.0.1:1", 104},
		{"lockbench --ca-file words.txt -u redis://127.0.0.1:1", 104},
		{"lockbench --topology ring:3", 104},
		{"lockbench --topology cluster:2", 104},
		{"lockbench -s redlock -u redis://127.0.0.1:1", 104},
		{"lockbench -s redlock -u 127.0.0.1:1,127.0.0.1:2", 104},
		{"lockbench -u 127.0.0.1:1,redis://127.0.0.1:1", 104},
		{"lockbench -u 127.0.0.1:1 --topology nodes:5", 104},
		{"lockbench -u 127.0.0.1:1 --topology replicas", 104},
		{"lockbench -u 127.0.0.1:1,127.0.0.1:2 --topology single", 104},
		{"lockbench -u redis://127.0.0.1:1/3 --topology cluster", 104},
		{"lockbench --generators 2", 104},
		{"lockbench --generators 0", 104},
		{"lockbench --generator 0 --session x", 104},
		{"lockbench --generators 2 --generator -7 -u 127.0.0.1:1", 104},
		{"lockbench -s spin,local --generators 2 --generator 2 --session 'a b' --join-timeout -1s --burst 10ms", 104},
		{"lockbench --generators 2 --fault holder-crash -u 127.0.0.1:1", 104},
		{"lockbench --generators 2 --work counter --counter apart -u 127.0.0.1:1", 104},
		{"JOB_COMPLETION_INDEX=first lockbench --generators 2 -u 127.0.0.1:1", 104},
		{"JOB_COMPLETION_INDEX=2 lockbench --generators 2 -u 127.0.0.1:1", 104},
	}},
	{aboutStores, []badInput{
		{"lockbench -s etcd -u postgres://127.0.0.1:1/postgres", 104},
		{"lockbench -s spin -u zk://127.0.0.1:1", 104},
		{"lockbench --generators 2 --work transaction -u 127.0.0.1:1", 104},
		{"lockbench -s noop --work transaction -u postgres://127.0.0.1:1/postgres", 113},
		{"lockbench -s etcd -u etcd://127.0.0.1:1", 113},
		{"lockbench doctor -u etcd://127.0.0.1:1 -s etcd,spin", 104},
		{"lockbench -s etcd -u etcd://127.0.0.1:1 --durability fsync", 104},
		{"lockbench -s postgres -u postgres://127.0.0.1:1/postgres --durability default", 104},
		{"lockbench -s postgres:mode=row", 104},
		{"lockbench -s etcd:watch=now", 104},
		{"lockbench -s zookeeper -u zk://127.0.0.1:1 --durability memory", 104},
		{"lockbench advise --topology etcd:3", 104},
	}},
	{"Outputs", []badInput{
		{"lockbench -o yaml", 104},
		{"lockbench -o json=", 104},
		{"lockbench -o json=none/out.json", 104},
		{"lockbench -o json=.", 104},
		{"lockbench -s spin -o hgrm -o hgrm=none/waits.hgrm -o csv=waits-spin.hgrm -o hgrm=waits.hgrm", 104},
		{"lockbench -o table -o json", 104},
		{"lockbench -o yaml -o json=none/out.json -o json=. -o json=", 104},
		{"lockbench -o json=out.json --clients 0", 104},
		{"lockbench -o json=out -o csv=./out", 104},
		{"lockbench --workload load.yaml -o json=load.yaml", 104},
		{"lockbench -o run.csv", 104},
		{"lockbench report run.json -o run.json", 104},
		{"lockbench report run.json -o x.pdf", 104},
		{"lockbench report run.json -o x.png", 104},
		{"lockbench report run.json -o page", 104},
		{"lockbench report run.json -o -", 104},
		{"lockbench report run.json -o pdf=x", 104},
		{"lockbench report run.json -o hgrm", 104},
		{"lockbench report run.json -o tabels", 104},
		{"lockbench report run.json linked.json -o csv=all.csv", 104},
		{"lockbench report run.json -o waits.svg", 104},
		{"lockbench report run.json -o waits.html --chart 1-throughput", 104},
		{"lockbench report --chart 1-throughput", 104},
		{"lockbench report run.json -o no/such/page.html", 104},
		{"lockbench report -o page.html", 104},
		{"lockbench compare run.json linked.json -o json=linked.json", 104},
	}},
	{"Reports that are read", []badInput{
		{"lockbench report none.json -o page.html", 104},
		{"lockbench report words.txt -o page.html", 104},
		{"lockbench report cut.json -o page.html", 104},
		{"lockbench report newer.json -o page.html", 104},
		{"lockbench report empty -o page.html", 104},
		{"lockbench report cut.json newer.json none.json -o words.html", 104},
		{"lockbench compare run.json --alpha 0% -o pdf", 104},
		{"lockbench compare run.json run.json --threshold 5", 104},
		{"lockbench compare run.json run.json --metric sped", 104},
		{"lockbench observe none", 104},
		{"lockbench observe none empty", 104},
		{"lockbench observe empty", 104},
		{"lockbench observe words.txt", 104},
		{"lockbench observe words.txt --top 0 -o csv", 104},
		{"lockbench observe words.txt -o trace", 104},
		{"lockbench observe words.txt -o workload=observed.yaml", 104},
		{"lockbench observe", 104},
		{"lockbench observe redis://127.0.0.1:1", 113},
		{"lockbench observe redis://127.0.0.1:1 --for 0", 104},
		{"lockbench observe redis://127.0.0.1:1 --for 61s --lines 0 --threshold unsafe_release==0 --threshold expired", 104},
		{"lockbench observe words.txt --for 5s --lines 10", 104},
		{"lockbench observe words.txt --exec true --for 0s --top 0 --threshold 'expired<many'", 104},
		{"lockbench observe --exec ''", 104},
		{"lockbench observe 127.0.0.1:1,redis://127.0.0.1:2", 104},
		{"lockbench observe redis+sentinel://127.0.0.1:1/primary", 104},
		{"lockbench observe redis://me:secret@127.0.0.1:1x --cert none.pem", 104},
		{"lockbench observe etcd://127.0.0.1:1", 104},
		{"lockbench observe 127.0.0.1:6379", 104},
	}},
	{"Other commands", []badInput{
		{"lockbench doctor", 104},
		{"lockbench doctor -u process", 104},
		{"lockbench doctor -u redis://127.0.0.1:1 -s spni", 104},
		{"lockbench doctor -u redis://127.0.0.1:1 -s noop", 104},
		{"lockbench ab true", 104},
		{"lockbench ab none none", 104},
		{"lockbench ab --unknown", 104},
		{"lockbench ab none --pairs 0 --until noon -- --redis 127.0.0.1:1 -q", 104},
		{"lockbench ab true true -- -o json", 104},
		{"lockbench ab true true -- --session x --join-timeout 1s", 104},
		{"lockbench record --sessions 0 --every -1s", 104},
		{"lockbench record out none a/none -- -o json --dry-run", 104},
		{"lockbench advise --for perf", 104},
		{"lockbench advise --language rust", 104},
		{"lockbench advise -s redlock", 104},
		{"lockbench advise --for speed --language cobol -o yaml", 104},
		{"lockbench advise --clients 1,2 --runs 0 -s setnx,spine", 104},
		{"LOCKBENCH_CLIENTS=0 lockbench advise", 104},
		{"lockbench advise 7", 104},
		{"lockbench advise -s noop", 104},
		{"lockbench claims 99 -o yaml --redis redis://127.0.0.1:x", 104},
		{"lockbench claims 5 --rounds 0", 104},
		{"lockbench claims none.yaml", 104},
		{"lockbench claims words.txt", 104},
		{"lockbench selfcheck --only everything,audit --redis redis://127.0.0.1:x", 104},
		{"lockbench list pubsbu spn", 104},
		{"lockbench --hlep", 104},
		{"lockbench --export-json out.json --rps 5", 104},
		{"lockbench completion tcsh", 104},
		{"lockbench completion", 104},
	}},
}

func prepareBadInputs(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	measured(t, "run.json")
	report, err := os.ReadFile("run.json")
	if err != nil {
		t.Fatal(err)
	}
	put(t, "cut.json", string(report[:300]))
	put(t, "newer.json", strings.Replace(string(report), "report/1", "report/2", 1))
	put(t, "words.txt", "only words\n")
	put(t, "odd.yaml", "clients: 5\nhlod: 5ms\nkeys: many\n")
	put(t, "load.yaml", "clients: 2\n")
	put(t, "bench.yaml", "strategeis: [spin]\nruns: [1, 2]\nhold: soon\nthresholds: [fast]\nclients: 5\n"+
		"redis: {host: a}\nkeys: 0\n")
	for _, err := range []error{os.Symlink("run.json", "linked.json"), os.Mkdir("empty", 0o777)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// shellWords splits a command line as a shell does, into environment variables and arguments.
func shellWords(line string) (variables, args []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			args = append(args, part)
			continue
		}
		args = append(args, strings.Fields(part)...)
	}
	for len(args) > 0 && args[0] != "lockbench" {
		variables, args = append(variables, args[0]), args[1:]
	}
	return variables, args[1:]
}

// For every bad input, lockbench must exit with the listed code and print a message. testdata/badinputs.txt lists the
// message of each input, and docs/ERRORS.md explains each kind of message.
func TestBadInputs(t *testing.T) {
	file, page := absolute(t, "testdata/badinputs.txt"), absolute(t, "../docs/ERRORS.md")
	for _, entry := range os.Environ() { // variables of the caller must not change the messages
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "LOCKBENCH_") || strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("TMPDIR", t.TempDir()) // lockbench reports leftovers of killed runs in TMPDIR
	prepareBadInputs(t)
	before := contents(t, ".")
	whole, missing := leftOut(buildTags(), "etcd") == "", ""
	if !whole {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, missing, _ = strings.Cut(string(text), "\n# "+aboutStores+"\n")
		missing, _, _ = strings.Cut(missing, "\n# ")
	}
	var all strings.Builder
	all.WriteString(badInputsIntro)
	lines := 0
	for _, group := range badInputs {
		all.WriteString("\n# " + group.about + "\n")
		if group.about == aboutStores && !whole { // make others tests it
			all.WriteString(missing)
			continue
		}
		for _, test := range group.lines {
			lines++
			variables, args := shellWords(test.line)
			for _, v := range variables {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			code, stdout, stderr := said(t, args...)
			if code != test.code || stderr == "" {
				t.Errorf("%s: exit code %d, want %d, said:\n%s", test.line, code, test.code, stderr)
			}
			if stdout != "" {
				t.Errorf("%s: printed %s", test.line, stdout)
			}
			fmt.Fprintf(&all, "\n%d %s\n", code, test.line)
			for line := range strings.Lines(stderr) {
				message, ours := strings.CutPrefix(strings.TrimSpace(line), "lockbench: ")
				if !ours {
					t.Errorf("%s: said %q", test.line, line)
				}
				if whole || !strings.HasPrefix(message, "next: this lockbench was built with ") {
					all.WriteString(messageIndent + message + "\n")
				}
			}
			// A dry run must also reject the command line, unless the error appears only after a server or driver has started.
			if code == ExitConfig && isRun(args) && !strings.Contains(test.line, "exec:/bin/false") {
				dry, _, said := said(t, append(args, "--dry-run")...)
				if dry != ExitConfig && !strings.HasSuffix(test.line, "--clients") {
					t.Errorf("%s --dry-run: exit code %d, said %q", test.line, dry, said)
				}
			}
			for _, v := range variables {
				name, _, _ := strings.Cut(v, "=")
				if err := os.Unsetenv(name); err != nil { // the test's end restores it
					t.Fatal(err)
				}
			}
		}
	}
	if lines < 60 {
		t.Errorf("only %d bad inputs", lines)
	}
	if diff := cmp.Diff(before, contents(t, ".")); diff != "" {
		t.Errorf("files have changed:\n%s", diff)
	}
	golden.Compare(t, file, all.String())
	kindsOfMessages(t, page, all.String())
	codes := "| exit code | meaning |\n|---|---|\n"
	for _, e := range exitCodes {
		codes += fmt.Sprintf("| %d | %s |\n", e.Code, e.detail())
	}
	golden.Section(t, page, "<!-- exit codes -->\n", "<!-- end of exit codes -->\n", codes)
}

func absolute(t *testing.T, file string) string {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// kindsOfMessages compares the page docs/ERRORS.md with tested, the content of testdata/badinputs.txt. Each message in
// tested must match a kind on the page, and each kind must match a message in tested.
func kindsOfMessages(t *testing.T, page, tested string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	for line := range strings.Lines(tested) {
		message, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), messageIndent)
		if is && !strings.HasPrefix(message, "next: ") {
			messages = append(messages, message)
		}
	}
	code := regexp.MustCompile("`[^`]+`")
	_, tables, _ := strings.Cut(string(text), "\n## Messages\n")
	known := map[string]bool{} // messages
	for line := range strings.Lines(tables) {
		cell, _, isRow := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !isRow || !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, kind := range code.FindAllString(cell, -1) {
			parts := strings.ReplaceAll(regexp.QuoteMeta(strings.Trim(kind, "`")), "…", ".*")
			pattern, found := regexp.MustCompile(parts), false
			for _, message := range messages {
				if pattern.MatchString(message) {
					known[message], found = true, true
				}
			}
			if !found {
				t.Errorf("docs/ERRORS.md: no tested message is of the kind %s", kind)
			}
		}
	}
	for _, message := range messages {
		if !known[message] {
			t.Errorf("docs/ERRORS.md has no kind for %q", message)
		}
	}
}

// isRun reports whether a command line starts a run: it then begins with a flag, not with the name of a command.
func isRun(args []string) bool { return len(args) > 0 && strings.HasPrefix(args[0], "-") }

// messageIndent is the indent of each message in testdata/badinputs.txt.
const messageIndent = "    "

const badInputsIntro = `Each tested mistake with its exit code and messages; go test ./command -run TestBadInputs -update writes it.
run.json is a report, linked.json a link to it, cut.json a part of it, and newer.json a report of another version.
words.txt contains words, and the directory empty contains no report.
`
