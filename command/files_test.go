package command

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func said(t *testing.T, words ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaints bytes.Buffer
	code = Main(t.Context(), words, strings.NewReader(""), &out, &complaints)
	return code, out.String(), complaints.String()
}

// contents maps the path of each file below a directory to the file's content. For a link, this is the content of its
// target.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			content = []byte(err.Error())
		}
		all[path] = string(content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o777); err != nil {
		t.Fatal(err)
	}
}

// measured makes a short run of a lock that needs no Redis, and writes the report to the named file.
func measured(t *testing.T, file string) {
	t.Helper()
	if code, _, stderr := said(t, "-q", "-s", "local", "-c", "2", "-n", "200", "-w", "0s", "--no-baselines", "-o",
		"json="+file); code != ExitOK && code != ExitInvalid {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
}

// overwriting lists command lines for each command that writes files: one for each kind of file that the command reads.
// The test replaces OUT with each alias of that file.
var overwriting = map[string][]struct {
	read string
	line string
}{
	"run": {
		{"holds.txt", "run -s local --hold file:holds.txt -o json=OUT"},
		{"holds.txt", "run --dry-run -s local --think file:holds.txt -o table -o csv=OUT"},
		{"load.yaml", "run -s spin -u redis://127.0.0.1:1 --workload load.yaml -o table=OUT"},
		{"holds.txt", "run -s local --workload load.yaml -o csv=OUT"},
		{"ca.pem", "run -s spin -u rediss://127.0.0.1:1 --ca-file ca.pem -o json=OUT"},
	},
	"compare": {
		{"a.json", "compare a.json b.json -o json=OUT"},
		{"b.json", "compare a.json *.json -o text -o markdown=OUT"},
		{"runs/c.json", "compare a.json runs -o json=OUT"},
	},
	"report": {
		{"a.json", "report b.json a.json -o html=OUT"},
		{"runs/c.json", "report runs -o tables=OUT"},
	},
	"ab": {
		{"base", "ab ./base ./head -u redis://127.0.0.1:1 -o json=OUT"},
		{"head", "ab ./base ./head -u redis://127.0.0.1:1 -o markdown=OUT"},
		{"ca.pem", "ab ./base ./head -u rediss://127.0.0.1:1 --ca-file ca.pem -o json=OUT"},
		{"load.yaml", "ab ./base ./head -u redis://127.0.0.1:1 -o json=OUT -- --workload load.yaml"},
		{"holds.txt", "ab ./base ./head -u redis://127.0.0.1:1 -o json=OUT -- --workload load.yaml"},
	},
	"claims": {
		{"mine.yaml", "claims mine.yaml -u redis://127.0.0.1:1 -o markdown=OUT"},
		{"load.yaml", "claims mine.yaml -u redis://127.0.0.1:1 -o markdown=OUT"},
		{"ca.pem", "claims 5 --list -u rediss://127.0.0.1:1 --ca-file ca.pem -o json=OUT"},
	},
	"advise": {
		{"load.yaml", "advise --workload load.yaml -u redis://127.0.0.1:1 -o json=OUT"},
		{"holds.txt", "advise --hold file:holds.txt -u redis://127.0.0.1:1 -o json=OUT"},
		{"ca.pem", "advise --dry-run -u rediss://127.0.0.1:1 --ca-file ca.pem -o json=OUT"},
	},
	"limits": {
		{"load.yaml", "limits -s spin --workload load.yaml -u redis://127.0.0.1:1 -o json=OUT"},
		{"ca.pem", "limits -s spin -u rediss://127.0.0.1:1 --ca-file ca.pem -o html=OUT"},
	},
	"check":     nil, // it reads no file
	"observe":   {{"capture", "observe capture -o json=OUT"}},
	"doctor":    {{"ca.pem", "doctor -u rediss://127.0.0.1:1 --ca-file ca.pem -o json=OUT"}},
	"selfcheck": {{"ca.pem", "selfcheck --only audit -u rediss://127.0.0.1:1 --ca-file ca.pem -o json=OUT"}},
}

// aliases returns several paths of the file whose name is in the parameter read. It creates the links that some of them
// need.
func aliases(t *testing.T, read string) []string {
	t.Helper()
	there, err := filepath.Abs(read)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.Symlink(there, "symbolic"), os.Link(there, "hard"), os.Symlink(filepath.Dir(there), "elsewhere"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return []string{read, "./" + read, there, "symbolic", "hard", filepath.Join("elsewhere", filepath.Base(read))}
}

func TestNoOutputOverwritesAnInput(t *testing.T) {
	place := t.TempDir()
	t.Chdir(place)
	measured(t, "a.json")
	report, err := os.ReadFile("a.json")
	if err != nil {
		t.Fatal(err)
	}
	put(t, "b.json", string(report))
	if err := os.Mkdir("runs", 0o777); err != nil {
		t.Fatal(err)
	}
	put(t, "runs/c.json", string(report))
	put(t, "holds.txt", "1ms\n")
	put(t, "load.yaml", "clients: 2\nhold: file:holds.txt\n")
	put(t, "ca.pem", "no certificate, which is said too")
	put(t, "capture", monitorLines)
	put(t, "base", "#!/bin/sh\nexit 0\n")
	put(t, "head", "#!/bin/sh\nexit 1\n")
	put(t, "mine.yaml",
		"says: Two exclude\nruns:\n  one: --workload load.yaml -s spin\nexpect:\n"+
			"  - {what: overlaps, figure: one.overlaps, is: \"== 0\", total: true}\n")
	for name, lines := range overwriting {
		for _, test := range lines {
			names := aliases(t, test.read)
			for _, out := range names {
				before := contents(t, place)
				line := strings.ReplaceAll(test.line, "OUT", out)
				code, stdout, stderr := said(t, strings.Fields(line)...)
				if code != ExitConfig || !strings.Contains(stderr, "would overwrite") ||
					!strings.Contains(stderr, out) || stdout != "" {
					t.Errorf("%s: %s: exit code %d, said: %s%s", name, line, code, stderr, stdout)
				}
				if diff := cmp.Diff(before, contents(t, place)); diff != "" {
					t.Fatalf("%s has changed files:\n%s", line, diff)
				}
			}
			for _, name := range []string{"symbolic", "hard", "elsewhere"} {
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// The map overwriting must have an entry for each command that has the flag --output, so that a new command cannot be
// forgotten.
func TestEveryCommandWithOutputsIsTested(t *testing.T) {
	var withOutputs []string
	for _, cmd := range (&app{stderr: &locked{}}).root().Commands() {
		if cmd.Flags().Lookup("output") != nil {
			withOutputs = append(withOutputs, cmd.Name())
		}
	}
	slices.Sort(withOutputs)
	if diff := cmp.Diff(withOutputs, slices.Sorted(maps.Keys(overwriting))); diff != "" {
		t.Errorf("(-commands +tested):\n%s", diff)
	}
}

func TestOutputsToOneFileAreRefused(t *testing.T) {
	place := t.TempDir()
	t.Chdir(place)
	measured(t, "a.json")
	put(t, "old.txt", "old")
	for _, err := range []error{
		os.Mkdir("there", 0o777), os.Symlink("there", "link"), os.Symlink("old.txt", "soft"),
		os.Link("old.txt", "hard"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := contents(t, place)
	for _, line := range []string{
		"run -s local -o json=x -o csv=x",
		"run -s local -o json=x -o csv=./x",
		"run -s local -o json=old.txt -o csv=soft",
		"run -s local -o json=hard -o csv=soft",
		"run -s local -o json -o csv",
		"run -s local -o json=- -o csv",
		"run -s local,noop -o json=waits-noop.hgrm -o hgrm=waits.hgrm", // one of its files
		"compare a.json a.json -o json=there/x -o text=there/../there/x",
	} {
		code, stdout, stderr := said(t, strings.Fields(line)...)
		if code != ExitConfig || !strings.Contains(stderr, "both write ") || stdout != "" {
			t.Errorf("%s: exit code %d, said: %s%s", line, code, stderr, stdout)
		}
	}
	if diff := cmp.Diff(before, contents(t, place)); diff != "" {
		t.Errorf("files have changed:\n%s", diff)
	}
	// lockbench must not mistake two outputs to /dev/null, or files with similar names, for one file that is written
	// twice.
	for _, line := range []string{
		"-s local --dry-run -o json=/dev/null -o csv=/dev/null",
		"-s local --dry-run -o json=there/x -o csv=x",
		"-s local --dry-run -o json=old.txt",
	} {
		if code, _, stderr := said(t, strings.Fields(line)...); code != ExitOK {
			t.Errorf("%s: exit code %d: %s", line, code, stderr)
		}
	}
}
