package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range list {
		names = append(names, entry.Name())
	}
	return names
}

func TestSaveLeavesAFileAloneThatCannotBeEncoded(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.json")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	half := func(w io.Writer, _ *results.Report, _ bool) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			t.Error(err)
		}
		return errors.New("no more")
	}
	err := output[*results.Report]{format: "json", file: file, write: half}.save(&results.Report{}, io.Discard, false)
	if err == nil || !strings.Contains(err.Error(), "no more") {
		t.Errorf("error %v", err)
	}
	if content, _ := os.ReadFile(file); string(content) != "old" {
		t.Errorf("the file now holds %q", content)
	}
	if names := entries(t, dir); len(names) != 1 {
		t.Errorf("leftovers: %v", names)
	}
}

func TestReplaceKeepsLinksAndRights(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("old, and longer"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("target", link); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writable(link), replace(link, []byte("new"))); err != nil {
		t.Fatal(err)
	}
	if content, _ := os.ReadFile(target); string(content) != "new" {
		t.Errorf("the target holds %q", content)
	}
	if stat, err := os.Lstat(link); err != nil || stat.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", stat, err)
	}
	if stat, err := os.Stat(target); err != nil || stat.Mode().Perm() != 0o640 {
		t.Errorf("the rights have changed: %v %v", stat, err)
	}
}

// A link into /proc resolves to a name that no file has: replacing it would
// replace the link.
func TestReplaceWritesIntoAPipe(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here:", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	if err := writable(link); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() {
		content, err := os.ReadFile(pipe)
		got <- string(content) + errorText(err)
	}()
	if err := replace(link, []byte("through")); err != nil {
		t.Fatal(err)
	}
	if content := <-got; content != "through" {
		t.Errorf("the pipe gave %q", content)
	}
	if stat, err := os.Lstat(pipe); err != nil || stat.Mode()&fs.ModeNamedPipe == 0 {
		t.Errorf("the pipe was replaced: %v %v", stat, err)
	}
}

// Two lockbenches may have the same output: each of them writes a whole file, and fails at nothing.
func TestTwoWriteOneFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.json")
	content := bytes.Repeat([]byte("x"), 10_000)
	var both errgroup.Group
	for range 2 {
		both.Go(func() error {
			for range 100 {
				if err := errors.Join(writable(file), replace(file, content)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := both.Wait(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("leftovers: %v %v", files, err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestSaveToStandardOutput(t *testing.T) {
	outputs := reportOutputs()
	if err := outputs.Set("json=-"); err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	if err := outputs.all()[0].save(&results.Report{}, &stdout, false); err != nil ||
		!strings.HasPrefix(stdout.String(), "{") {
		t.Errorf("%v, wrote %q", err, stdout.String())
	}
}

// A strategy that has not said what it needs gets no ACL, which would lock its user out.
func TestUndeclaredRightsPrintNoACL(t *testing.T) {
	printed := func(info strategies.Info) string {
		var b strings.Builder
		rights(func(label string, texts ...string) { fmt.Fprintf(&b, "%s %s\n", label, texts[0]) }, info)
		return b.String()
	}
	info := strategies.Info{Name: "new", Capacity: 1, Nodes: 1}
	if got, want := printed(info), "ACL not declared\n"; got != want {
		t.Errorf("of empty rights it prints %q, want %q", got, want)
	}
	info.Rights.Commands = []string{"incr"}
	if got := printed(info); !strings.Contains(got, "ACL SETUSER") || !strings.Contains(got, "+incr") {
		t.Errorf("of rights it prints %q", got)
	}
}
