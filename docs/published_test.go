package docs_test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// step holds the fields that the tests check in a step of a GitHub workflow or action.
type step struct {
	Uses string
	Run  string
	With map[string]any
}

// workflow holds the fields that the tests check in a file below .github.
type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		Permissions map[string]string
		Steps       []step
	}
	Runs struct{ Steps []step } // of an action
}

func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	all := map[string]workflow{}
	for _, pattern := range []string{"workflows/*.yml", "actions/*/action.yml"} {
		files, err := filepath.Glob(filepath.Join("../.github", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var w workflow
			if err := yaml.Unmarshal(text, &w); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all[file] = w
		}
	}
	return all
}

// Workflows must pin actions to commits, which cannot be moved, and each job must have only the rights that it needs. A
// checkout must leave no token in the clone, and a release must be built without caches.
func TestWorkflowsArePinnedAndLeaveNoCredentials(t *testing.T) {
	pinned := regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+@[0-9a-f]{40}$`)
	var writers []string
	check := func(where string, steps []step) {
		for _, s := range steps {
			action, _, _ := strings.Cut(s.Uses, "@")
			if s.Uses != "" && !strings.HasPrefix(s.Uses, "./") && !pinned.MatchString(s.Uses) {
				t.Errorf("%s: %s is no commit", where, s.Uses)
			}
			if action == "actions/checkout" && s.With["persist-credentials"] != false {
				t.Errorf("%s: the clone keeps the token", where)
			}
			if strings.Contains(where, "release.yml") && action == "actions/setup-go" && s.With["cache"] != false {
				t.Errorf("%s: what is released may come from a cache", where)
			}
			if strings.Contains(strings.TrimPrefix(s.Run, "${{ github.action_path }}/"), "${{") {
				t.Errorf("%s: an expression becomes part of a script: %s", where, s.Run)
			}
		}
	}
	for file, w := range workflows(t) {
		check(file, w.Runs.Steps)
		if w.Jobs != nil && (w.Permissions == nil || len(w.Permissions) > 0) {
			t.Errorf("%s: every job gets the rights %v", file, w.Permissions)
		}
		for name, job := range w.Jobs {
			where := filepath.Base(file) + " " + name
			check(where, job.Steps)
			if len(job.Permissions) == 0 {
				t.Errorf("%s: its rights are not said", where)
			}
			for right, extent := range job.Permissions {
				if extent == "write" {
					writers = append(writers, where+" "+right)
				}
			}
		}
	}
	slices.Sort(writers)
	if want := []string{
		"history.yml measure contents", "regression.yml ab pull-requests",
		"release.yml publish contents",
	}; !slices.Equal(writers, want) {
		t.Errorf("%q may write, want %q", writers, want)
	}
}

// The action overwrites its earlier comment on a pull request, which it finds by a mark. Any user can write a comment
// with the same mark, so the action must also check the author.
func TestActionReplacesOnlyItsOwnComment(t *testing.T) {
	const mark, us = "<!-- lockbench-ab -->", "github-actions[bot]"
	tsv := func(lines ...string) string { return strings.Join(append(lines, ""), "\n") }
	for name, test := range map[string]struct{ user, comments, want string }{
		"ours is written over": {
			"exit 1", tsv("1\tmallory\t"+mark, "2\t"+us+"\thello", "3\t"+us+"\t"+mark, "4\t"+us+"\t"+mark),
			"--method PATCH repos/o/r/issues/comments/3",
		},
		"another's is not": {
			"exit 1", tsv("1\tmallory\t"+mark, "2\t"+us+"\t"+mark+" quoted"), "repos/o/r/issues/7/comments",
		},
		"there is none": {"exit 1", "", "repos/o/r/issues/7/comments"},
		"a token of a user's": {
			"echo robot", tsv("1\t"+us+"\t"+mark, "5\trobot\t"+mark), "--method PATCH repos/o/r/issues/comments/5",
		},
		"only the bot's": {"echo robot", tsv("1\t" + us + "\t" + mark), "repos/o/r/issues/7/comments"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{
				"gh": "#!/bin/sh\ncase \"$*\" in\n\"api user \"*) " + test.user + ";;\n" +
					"*--paginate*) cat \"$0.comments\";;\n*) echo \"$@\" >>\"$0.calls\";;\nesac\n",
				"gh.comments": test.comments, "comparison.md": "| a | b |\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("bash", "../.github/actions/lockbench-ab/comment.sh",
				filepath.Join(dir, "comparison.md"))
			path := dir + ":" + os.Getenv("PATH")
			cmd.Env = append(os.Environ(), "PATH="+path, "GITHUB_REPOSITORY=o/r", "PULL_REQUEST=7", "TMPDIR="+dir)
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			calls, err := os.ReadFile(filepath.Join(dir, "gh.calls"))
			want := "api --silent " + test.want + " --field body=@"
			if err != nil || !strings.HasPrefix(string(calls), want) || strings.Count(string(calls), "\n") != 1 {
				t.Errorf("it called %q, %v; want one of %s", calls, err, test.want)
			}
		})
	}
}

// licences runs, in the given directory, the release script that collects licences, and returns its output.
func licences(t *testing.T, folder string, args ...string) (string, error) {
	t.Helper()
	script, err := filepath.Abs("../.github/licences.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", append([]string{script}, args...)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off")
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// A release must contain the licence of every module that is compiled into it.
func TestReleaseContainsLicences(t *testing.T) {
	release, err := os.ReadFile("../.goreleaser.yaml")
	if err != nil || !strings.Contains(string(release), ".github/licences.sh bin/package/licences") ||
		!strings.Contains(string(release), `"bin/package/licences/**/*"`) {
		t.Errorf("the archive has no licences: %v", err)
	}
	to := t.TempDir()
	if said, err := licences(t, "..", to); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	const each = "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}"
	list := exec.Command("go", "list", "-deps", "-f", each, "./cmd/lockbench")
	list.Dir = ".."
	compiled, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]bool{"go@" + goVersion(t): true}
	for module := range strings.FieldsSeq(string(compiled)) {
		modules[module] = true
	}
	if len(modules) < 50 {
		t.Fatalf("only %d modules are compiled in", len(modules))
	}
	words := regexp.MustCompile(`(?i)copyright|licen[cs]e|permission`)
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		files, _ := filepath.Glob(filepath.Join(to, module, "*")) // the pattern is valid
		has := slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && words.Match(text)
		})
		if !has {
			t.Errorf("no licence of %s", module)
		}
	}

	bare := t.TempDir()
	for file, text := range map[string]string{
		"go.mod":        "module main\n\ngo 1.26\n\nrequire bare v1.0.0\n\nreplace bare => ./bare\n",
		"main.go":       "package main\n\nimport _ \"bare\"\n\nfunc main() {}\n",
		"bare/go.mod":   "module bare\n\ngo 1.26\n",
		"bare/bare.go":  "package bare\n",
		"bare/ode.text": "no licence\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(bare, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bare, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said, err := licences(t, bare, t.TempDir(), ".")
	if err == nil || !strings.Contains(said, "no licence of bare@v1.0.0") {
		t.Errorf("a module without a licence: %v, %q", err, said)
	}
}

func goVersion(t *testing.T) string {
	t.Helper()
	version, err := exec.Command("go", "env", "GOVERSION").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(version))
}

// "make drivers" must install only files whose hashes are recorded. For Python this needs no further check, because pip
// rejects a module without a hash.
func TestDriverInstallsVerifyHashes(t *testing.T) {
	read := func(file string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	recipe := read("drivers/install.sh")
	for _, part := range []string{
		"--only-binary :all: --require-hashes -r python/requirements.txt",
		"npm ci --prefix node", "mvn -q -B -C ",
		"sha256sum *) | diff redisson/dependencies.sha256 -",
	} {
		if !strings.Contains(recipe, part) {
			t.Errorf("install.sh has no %s", part)
		}
	}
	var lock struct {
		Packages map[string]struct{ Integrity string }
	}
	if err := yaml.Unmarshal([]byte(read("drivers/node/package-lock.json")), &lock); err != nil || len(lock.Packages) < 3 {
		t.Fatalf("%d packages of npm, %v", len(lock.Packages), err)
	}
	for name, p := range lock.Packages {
		if name != "" && !strings.HasPrefix(p.Integrity, "sha512-") {
			t.Errorf("npm gets %s by %q", name, p.Integrity)
		}
	}
	version := regexp.MustCompile(`<artifactId>redisson</artifactId>\s*<version>([^<]+)`).
		FindStringSubmatch(read("drivers/redisson/pom.xml"))
	jars := read("drivers/redisson/dependencies.sha256")
	if version == nil || !strings.Contains(jars, "  redisson-"+version[1]+".jar\n") {
		t.Errorf("the jars are not those of Redisson %v", version)
	}
}

// Every promise in SECURITY.md must name a test, and that test must exist.
func TestPromisesNameExistingTests(t *testing.T) {
	page, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`\bTest[A-Z]\w*`)
	trusted, promises, found := strings.Cut(string(page), "\n## Promises\n")
	for line := range strings.Lines(trusted) {
		cells := strings.Split(strings.Trim(line, "| \n"), "|")
		if none := strings.TrimSpace(cells[len(cells)-1]); len(cells) == 4 && !name.MatchString(none) &&
			!slices.Contains([]string{"what does not follow", "---", "–"}, none) {
			t.Errorf("no test holds %q", none)
		}
	}
	promises, _, _ = strings.Cut(promises, "\n## ")
	count := 0
	for line := range strings.Lines(promises) {
		if promise, is := strings.CutPrefix(line, "- "); is {
			if count++; !name.MatchString(promise) {
				t.Errorf("no test holds %q", promise)
			}
		}
	}
	if !found || count < 10 {
		t.Fatalf("the page has %d promises", count)
	}
	tests := map[string]bool{}
	defined := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err = filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && entry.Name() == ".git" {
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		code, err := os.ReadFile(file)
		for _, match := range defined.FindAllSubmatch(code, -1) {
			tests[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range name.FindAllString(string(page), -1) {
		if !tests[test] {
			t.Errorf("SECURITY.md names %s, which does not exist", test)
		}
	}
}
