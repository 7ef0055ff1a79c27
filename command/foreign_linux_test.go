package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/results"
)

// planted is a hostile text. It contains terminal escape sequences, commands to a CI system, and Markdown and HTML that
// would create links, pictures and mentions.
const planted = "\x1b[1A\x1b[2K\n::error::planted\r\n##[error]planted [planted](http://evil.example/) " +
	"![planted](https://evil.example/p.png) @planted a@planted.example &#64;planted #1 www.evil.example | `@planted` " +
	"\\[p](x) <img src=x> https://evil.example \u202e\u009b2K"

// TestHostileReportsAreEscaped replaces every text in a report with planted, and runs every command that shows reports.
// Their output must contain no terminal escape sequence and no command to a CI system.
func TestHostileReportsAreEscaped(t *testing.T) {
	t.Chdir(t.TempDir())
	foreign := foreignReport(t)
	put(t, "foreign.json", foreign)
	put(t, "other.json", strings.Replace(foreign, `"generator": "`, `"generator": "b`, 1))
	name := "\x1b[2K\n::error::planted.json"
	put(t, name, foreign[:len(foreign)/2])
	for _, line := range []string{
		"report foreign.json", "report foreign.json other.json", "report foreign.json -o html",
		"compare foreign.json other.json -o text", "compare foreign.json other.json -o markdown",
		"compare foreign.json other.json -o json", "report .",
	} {
		code, stdout, stderr := said(t, strings.Fields(line)...)
		if len(stdout)+len(stderr) == 0 || code == ExitUnreachable {
			t.Errorf("%s: exit code %d, it says nothing", line, code)
		}
		onlyShows(t, line, stdout)
		onlyShows(t, line, stderr)
		if strings.HasSuffix(line, "markdown") {
			linksNothing(t, line, stdout)
		}
	}
	report, err := readReport("foreign.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, format := range reportOutputs().formats {
		var shown strings.Builder
		if err := format(&shown, report, 120, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		onlyShows(t, name, shown.String())
		if name == "markdown" {
			linksNothing(t, name, shown.String())
		}
	}
}

// TestHostileFileNamesAreEscaped uses file names that contain terminal escape sequences and commands to a CI system. No
// output of lockbench may contain either.
func TestHostileFileNamesAreEscaped(t *testing.T) {
	t.Chdir(t.TempDir())
	name := func(rest string) string { return "\x1b[2K\n::error::planted" + rest }
	report, folder, drivers := name(".json"), name("folder"), name("drivers")
	measured(t, report)
	for _, at := range []string{folder, drivers} {
		if err := os.Mkdir(at, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(folder, report), string(text))
	put(t, filepath.Join(folder, name("cut.json")), string(text[:9]))
	put(t, name("holds"), "1ms\n")
	put(t, name("wrong"), "none\n")
	put(t, name("load.yaml"), "clients: 2\n")
	put(t, name("bad.yaml"), "clinets: 2\n"+name("option")+": 3\n")
	put(t, name("claim.yaml"), "says: x\nruns: {a: --strategy spin}\n"+
		"expect: [{what: x, figure: a.overlaps, is: '== 0'}]\n")
	put(t, name("build"), "#!/bin/sh\necho '"+name("said")+"' >&2; exit 104\n")
	if err := os.Chmod(drivers, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(drivers, name("driver")), "#!/bin/sh\necho '"+name("said")+"' >&2\nexit 1\n")
	if err := os.Chmod(filepath.Join(drivers, name("driver")), 0o755); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(driver.PathVariable, filepath.Join(here, drivers))
	local := []string{"-s", "local", "-c", "2", "-n", "9", "-w", "0s", "--no-baselines"}
	run := func(more ...string) []string { return append(slices.Clip(local), more...) }
	for _, line := range [][]string{
		{"report", report},
		{"report", report, folder},
		{"report", report, "-o", name("page.html")},
		{"report", name("none.json")},
		{"report", name("load.yaml")},
		{"report", folder, "-o", "-"},
		{"compare", report, report},
		{"compare", report, folder},
		{"compare", report, folder, "-o", "markdown"},
		{"compare", report, folder, "-o", "junit"},
		{"compare", report, folder, "-o", "json"},
		{"compare", report, folder, "-o", "text=" + name("text")},
		{"compare", report, name("none")},
		run("--hold", "file:"+name("holds"), "-o", "table", "-o", "json="+name("out.json")),
		run("--hold", "file:"+name("holds"), "--dry-run", "-o", "json="+name("out.json")),
		run("--hold", "file:"+name("wrong")), run("--workload", name("load.yaml"), "--dry-run"),
		run("--workload", name("bad.yaml")), run("--workload", name("none.yaml")), run("-f", name("bad.yaml")),
		run("-f", name("load.yaml"), "--dry-run"), run("-o", "json="+name("none/x")),
		run("--ca-file", name("holds"), "-u", "rediss://127.0.0.1:1"),
		run("--redis-password-file", name("none"), "--dry-run"),
		{"--cert", name("c"), "--key", name("k"), "-u", "rediss://x"},
		{"claims", name("claim.yaml"), "--list"},
		{"claims", name("claim.yaml"), "--dry-run", "-o", "json=" + name("c")},
		{"claims", name("bad.yaml")},
		{"claims", name("none.yaml")},
		{"ab", "./" + name("build"), "./" + name("build"), "--pairs", "1", "-u", "process:" + name("none")},
		{"ab", "./" + name("none"), "true"},
		{"record", folder, "./" + name("build"), "-n", "1", "--", "-s", "local"},
		{"record", name("holds"), "./" + name("build"), "-n", "1", "--", "-s", "local"},
		{"drivers"},
		{"check", "exec:" + name("driver")},
		{"check", "exec:./" + name("none")},
		{"check", name("x")},
		{"advise", "-s", "exec:./" + name("none")},
		{"advise", "--dry-run", "-o", "json=" + name("a")},
		{"list", name("x")},
		{"selfcheck", "--only", name("x")},
		{"doctor", "-u", "unix:///" + name("s")},
		{"clean", "-u", "unix:///none/" + name("s")},
		{name("command")},
		{"--" + name("flag")},
	} {
		shown := fmt.Sprintf("%q", line)
		code, stdout, stderr := said(t, line...)
		names := strings.Contains(stdout+stderr, "planted")
		if len(stdout)+len(stderr) == 0 && code != ExitOK || line[0] == "compare" && !names {
			t.Errorf("%s: exit code %d, it names no file: %s%s", shown, code, stdout, stderr)
		}
		onlyShows(t, shown, stdout)
		onlyShows(t, shown, stderr)
	}
}

// TestLongNamesAreTruncated gives a strategy a name of 10 MB, which tables and pages repeat. The output of each command
// must not exceed 500 kB.
func TestLongNamesAreTruncated(t *testing.T) {
	t.Chdir(t.TempDir())
	measured(t, "own.json")
	text, err := os.ReadFile("own.json")
	if err != nil {
		t.Fatal(err)
	}
	put(t, "long.json", strings.ReplaceAll(string(text), `"local"`, `"`+strings.Repeat("x", 10_000_000)+`"`))
	for _, line := range []string{"report long.json", "report long.json -o html", "compare long.json long.json"} {
		if code, stdout, stderr := said(t, strings.Fields(line)...); code == ExitConfig || len(stdout) > 500_000 {
			t.Errorf("%s: exit code %d, %d bytes, %s", line, code, len(stdout), stderr)
		}
	}
}

// foreignReport returns a valid report in which every free text is the constant planted, as an untrusted author could
// write it.
func foreignReport(t *testing.T) string {
	t.Helper()
	measured(t, "own.json")
	report, err := readReport("own.json")
	if err != nil {
		t.Fatal(err)
	}
	hostile := results.Remarks{{
		Code: "x", Severity: "x", Figures: map[string]results.Quantity{"x": {Text: "x"}}, Text: "x",
	}}
	report.Error, report.Warnings = "x", hostile
	report.LeftOut = []results.LeftOut{{Strategy: "x", Why: hostile[0]}}
	report.Redis = results.Redis{
		Source: "address", Address: "x", Topology: "x", Nodes: []string{"x", "x"},
		Name: "x", Version: "x", Mode: "x", Network: "x", Image: "x", Durability: "x", Why: "x",
	}
	report.Tool.Commit, report.Tool.Branch = "x", "x"
	report.Shared = &results.Shared{Session: "x", Generator: 1, RedisRuns: []string{"x"}}
	for i := range report.Runs {
		run := &report.Runs[i]
		run.Point, run.Failure, run.Labels = "x", "x", hostile
		run.Errors = []results.ErrorCount{{Error: "x", Count: 3}}
		run.Safety.Leftovers, run.Safety.Broken = []string{"x"}, hostile
	}
	report.Runs = append(report.Runs, report.Runs[0])
	report.Runs[1].Invalid, report.Runs[1].Round = hostile, 2
	var text strings.Builder
	if err := results.WriteJSON(&text, report); err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal([]byte(text.String()), &document); err != nil {
		t.Fatal(err)
	}
	encode := func() string {
		encoded, err := json.MarshalIndent(document, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	count := 0
	// try appends the constant planted to the text was and stores the result with set. If the report is then invalid, try
	// restores the old text.
	try := func(was string, set func(any)) {
		set(was + planted)
		if _, err := results.ReadJSON(strings.NewReader(encode())); err != nil {
			set(was)
			return
		}
		count++
	}
	var plant func(any)
	plant = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, inner := range v {
				if text, ok := inner.(string); ok {
					try(text, func(x any) { v[name] = x })
				}
				plant(inner)
			}
		case []any:
			for i, inner := range v {
				if text, ok := inner.(string); ok {
					try(text, func(x any) { v[i] = x })
				}
				plant(inner)
			}
		}
	}
	plant(document)
	if count < 30 {
		t.Fatalf("only %d texts could be planted", count)
	}
	return encode()
}

// onlyShows fails the test if text contains terminal escape sequences or commands to a CI system.
func onlyShows(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		for _, r := range strings.TrimRight(line, "\r\n") {
			if !unicode.IsPrint(r) && r != '\u200b' && r != '\t' {
				t.Errorf("%s: %q has %q", what, line, r)
				break
			}
		}
		if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") {
			t.Errorf("%s: it commands a CI system: %q", what, line)
		}
	}
}

// live matches text that a Markdown renderer turns into a link, a picture or a mention.
var live = regexp.MustCompile(`(^|[^\\])[\[\]]|(^|[^\\])!\[|@[0-9A-Za-z]|#[0-9]|` +
	`https?://|www\.|<img|&#|(^|[^\\])` + "`@")

// linksNothing fails the test if a Markdown text has links, pictures or mentions, or a table row whose number of cells
// differs from the head.
func linksNothing(t *testing.T, what, text string) {
	t.Helper()
	cells := 0
	for line := range strings.Lines(text) {
		if found := live.FindString(line); found != "" {
			t.Errorf("%s: %q in %s", what, found, line)
		}
		if !strings.HasPrefix(line, "|") {
			cells = 0
			continue
		}
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if cells != 0 && n != cells {
			t.Errorf("%s: %d cells, the head has %d: %s", what, n, cells, line)
		}
		cells = n
	}
}

// TestHostileRepliesAreEscaped runs commands against a server whose INFO and error replies contain terminal escape
// sequences. The output must show the replies without these sequences.
func TestHostileRepliesAreEscaped(t *testing.T) {
	t.Parallel()
	server, claim := hostile(t), filepath.Join(t.TempDir(), "claim.yaml")
	put(t, claim, "says: \"planted \\e[2K ::error::planted\"\nruns: {a: --strategy setnx}\n"+
		"expect: [{what: \"\\e[2K\", figure: a.acq_per_s, is: '> 1', opposite: '<= 1'}]\n")
	run := "run -s setnx -c 2 -n 5 -w 0s --no-baselines --redis " + server + " -o "
	for _, line := range []string{
		"doctor --redis " + server, run + "tables", run + "markdown", strings.Replace(run, "setnx", "spin", 1) + "tables",
		"claims --dry-run " + claim,
	} {
		_, stdout, stderr := said(t, strings.Fields(line)...)
		if !strings.Contains(stdout+stderr, "planted") {
			t.Errorf("%s: the planted words are not in %s%s", line, stdout, stderr)
		}
		onlyShows(t, line, stdout)
		onlyShows(t, line, stderr)
		if strings.HasSuffix(line, "markdown") {
			linksNothing(t, line, stdout)
		}
	}
}

// hostile starts a server that plants hostile texts in its RESP replies, and returns its address.
func hostile(t *testing.T) string {
	t.Helper()
	line := strings.NewReplacer("\r", "", "\n", "\x1b[2K").Replace(planted)
	info := fmt.Sprintf("redis_version:%s%s\r\nredis_mode:standalone%s\r\nrole:master\r\nrun_id:%s\r\n"+
		"maxclients:10000\r\nmaxmemory:5\r\nmaxmemory_policy:%s\r\ncmdstat_%s:calls=1\r\n",
		"7.4.0", line, line, line, line, line)
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	var mu sync.Mutex
	held := map[string]string{} // the preflight needs working locks before it sends anything else
	answer := func(words []string) string {
		mu.Lock()
		defer mu.Unlock()
		if key := strings.Join(words[1:min(len(words), 2)], ""); strings.Contains(key, ":0:") {
			switch token := held[key]; strings.ToUpper(words[0]) {
			case "SETNX":
				if token != "" {
					return ":0\r\n"
				}
				held[key] = words[2]
			case "GET":
				return bulk(token)
			case "DEL":
				delete(held, key)
			}
		}
		switch strings.ToUpper(words[0]) {
		case "PING":
			return "+PONG\r\n"
		case "INFO":
			return bulk(info)
		case "CONFIG":
			return "*2\r\n" + bulk("save") + bulk(planted)
		case "TIME":
			return "*2\r\n" + bulk("1") + bulk("1")
		case "SELECT", "CLIENT":
			if len(words) > 1 && strings.EqualFold(words[1], "list") {
				return bulk("id=1 name=" + line + "\n")
			}
			return "+OK\r\n"
		case "SETNX", "SET", "DEL", "EXISTS", "PEXPIRE":
			return ":1\r\n"
		}
		return "-ERR planted " + line + "\r\n"
	}
	return "redis://" + drive.Serve(t, func(conn net.Conn) {
		for from := bufio.NewReader(conn); ; {
			words, err := readCommand(from)
			if err != nil {
				return
			}
			if _, err := io.WriteString(conn, answer(words)); err != nil {
				return
			}
		}
	})
}

// readCommand reads a Redis command, which is a RESP array of bulk strings.
func readCommand(from *bufio.Reader) ([]string, error) {
	number := func() (int, error) {
		line, err := from.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	count, err := number()
	if err != nil {
		return nil, err
	}
	var words []string
	for range count {
		size, err := number()
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(from, word); err != nil {
			return nil, err
		}
		words = append(words, string(word[:size]))
	}
	return words, nil
}

// TestInputsMustBeSmallRegularFiles checks that every command that reads a file rejects a FIFO, a device, a
// directory and a file that is too large.
func TestInputsMustBeSmallRegularFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	measured(t, "run.json")
	if err := syscall.Mkfifo("fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, "large", "")
	if err := os.Truncate("large", 64<<20+1); err != nil { // a sparse file, which needs no disk space
		t.Fatal(err)
	}
	if err := os.Mkdir("dir", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"report FILE", "compare run.json FILE", "claims FILE",
		"run -s local --workload FILE",
		"run -s local --hold file:FILE", "run -s spin -u rediss://127.0.0.1:1 --ca-file FILE",
		"doctor --redis rediss://127.0.0.1:1 --ca-file FILE",
	} {
		for file, want := range map[string]string{
			"fifo": "not a regular file", "/dev/zero": "not a regular file", "large": "larger than 64 MiB",
			"dir": "",
		} {
			line := strings.ReplaceAll(line, "FILE", file)
			type ended struct {
				code   int
				stderr string
			}
			end := make(chan ended, 1)
			go func() {
				code, stdout, stderr := said(t, strings.Fields(line)...)
				end <- ended{code, stdout + stderr}
			}()
			select {
			case e := <-end:
				if e.code != ExitConfig || !strings.Contains(e.stderr, want) ||
					!strings.Contains(e.stderr, filepath.Base(file)) {
					t.Errorf("%s: exit code %d: %s", line, e.code, e.stderr)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s does not end", line)
			}
		}
	}
}
