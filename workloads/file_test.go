package workloads

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFileEqualsFlags(t *testing.T) {
	const text = `# a comment
description: >
  two lines
  in one
clients: [10, 20]
keys: 4
hold: [1ms, "exp:2ms"]
timeout: 0s
coalesce: `
	if _, err := ReadFile("w.yaml", []byte(text+"yes")); err == nil {
		t.Fatal(`"yes" was taken for a truth value`)
	}
	file, err := ReadFile("w.yaml", []byte(text+"true"))
	if err != nil {
		t.Fatal(err)
	}
	if file.Description != "two lines in one" {
		t.Errorf("description %q", file.Description)
	}
	points, err := points(file)
	if err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, p := range points {
		labels = append(labels, p.Label)
		w := p.Workload
		if w.Keys != 4 || *w.Timeout != 0 || !w.Coalesce || w.TTL != Default().TTL || w.Instances != 10 {
			t.Errorf("%s: %+v", p.Label, w)
		}
	}
	want := []string{"clients=10 hold=1ms", "clients=10 hold=exp:2ms", "clients=20 hold=1ms", "clients=20 hold=exp:2ms"}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if last := points[3].Workload; last.Clients != 20 || last.Hold.Mean() != 2*time.Millisecond {
		t.Errorf("the last point is %+v", last)
	}
}

func TestEveryPresetIsAWorkload(t *testing.T) {
	if len(Presets()) == 0 {
		t.Fatal("there are none")
	}
	for _, name := range Presets() {
		file, err := Open(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if all, err := points(file); err != nil || len(all) == 0 || file.Description == "" {
			t.Errorf("%s: %d workloads, described as %q, %v", name, len(all), file.Description, err)
		}
	}
}

func TestSweepIsBounded(t *testing.T) {
	var d Draft
	many := strings.Split(strings.TrimSuffix(strings.Repeat("1,", 40), ","), ",")
	for i := range many {
		many[i] += strings.Repeat("0", i%3) // not all alike
	}
	if err := d.Give("clients", many...); err == nil || !strings.Contains(err.Error(), "1 is given twice") {
		t.Errorf("the same value twice: %v", err)
	}
	numbers := func(n int) (texts []string) {
		for i := range n {
			texts = append(texts, time.Duration(i+1).String())
		}
		return texts
	}
	for _, name := range []string{"hold", "think"} {
		if err := d.Give(name, numbers(40)...); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Points(); err == nil || !strings.Contains(err.Error(), "more than 1000 points") {
		t.Errorf("%v", err)
	}
}

// The description in a workload file, and errors about the file, must contain no terminal escapes and no commands to a
// CI system.
func TestFileTextsArePrintable(t *testing.T) {
	file, err := ReadFile("w.yaml", []byte("description: \"a\\e[2K ::error::\"\nclients: \"3\\e\"\n"))
	if file.Description != `a\x1b[2K \x3a:error::` || err == nil || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%q, %v", file.Description, err)
	}
}

// Each error of ReadFile must name the file. Each workload that ReadFile accepts must survive being written to JSON and
// read again.
func FuzzReadFile(f *testing.F) {
	for _, seed := range []string{
		"clients: 3\n", "clients: [1, 10]\nhold: uniform:1ms,2ms\n", "a: b: c", "- 1\n", "&a [*a]",
		"clients: !!binary aGk=\n",
		"? [a]\n: b\n", "clients: 1\n---\nkeys: 2\n", "hold: lognormal:1ms,0.5\nrate: 1e3/s\nseed: 0x10\n", "\xff\xfe",
		"timeout: ~\n",
		"description: |\n  x\ncoalesce: true\nkey-dist: [uniform, zipf:0.99]\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := ReadFile("w.yaml", []byte(text))
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "w.yaml") && strings.TrimSpace(line) != "" &&
					!strings.HasPrefix(line, "  ") {
					t.Fatalf("the error %q names no file", line)
				}
			}
			return
		}
		points, err := points(file)
		if err != nil {
			return
		}
		for _, p := range points {
			_ = p.Workload.Warnings()
			written, err := json.Marshal(p.Workload)
			if err != nil {
				t.Fatalf("%q gives a workload that JSON does not write: %v", text, err)
			}
			var read Spec
			if err := json.Unmarshal(written, &read); err != nil {
				t.Fatalf("%q gives a workload that JSON does not read: %v", text, err)
			}
			if diff := cmp.Diff(p.Workload, read); diff != "" {
				t.Fatalf("%q gives a workload that JSON changes: %s", text, diff)
			}
		}
	})
}

// points returns the workloads of f and all their errors. Each error names the file and line instead of the flag.
func points(f *File) ([]Point, error) {
	all, err := f.Draft.Points()
	problems := []error{f.Origins.Rename(err)}
	for _, p := range all {
		for _, problem := range apart(p.Workload.Validate()) {
			problems = append(problems, f.Origins.Rename(problem))
		}
	}
	return all, errors.Join(problems...)
}
