package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
)

// dead notes a lockbench that has ended.
func dead() owner {
	who := thisProcess("victim")
	who.PID = 1 << 30
	return who
}

// noted makes a directory of a server with that note.
func noted(t *testing.T, name string, who owner) string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), dirPattern+name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ownerFile), who)
	return dir
}

func write(t *testing.T, file string, who owner) {
	t.Helper()
	text, err := json.Marshal(who)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sweptInTime fails the test if a sweep waits for something that others have planted.
func sweptInTime(t *testing.T) Swept {
	t.Helper()
	ended := make(chan Swept, 1)
	go func() { ended <- Sweep(t.Context()) }()
	select {
	case swept := <-ended:
		return swept
	case <-time.After(time.Minute):
		t.Fatal("the sweep does not end")
		return Swept{}
	}
}

// Everybody can make files in the directory for temporary files. What is there is removed only if
// it is a directory of ours with a note that nobody else can have written.
func TestSweepTrustsOurOwnAlone(t *testing.T) {
	must := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("TMPDIR", t.TempDir())
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, ownerFile), dead())
	replaced := func(name string, plant func(file string) error) string {
		dir := noted(t, name, dead())
		file := filepath.Join(dir, ownerFile)
		must(os.Remove(file), plant(file))
		return dir
	}
	kept := map[string]string{
		"an owner that is a pipe": replaced("pipe", func(file string) error { return syscall.Mkfifo(file, 0o600) }),
		"an owner that is a link": replaced("link", func(file string) error {
			return os.Symlink(filepath.Join(elsewhere, ownerFile), file)
		}),
		"an owner that is a directory": replaced("folder", func(file string) error { return os.Mkdir(file, 0o700) }),
		"an owner that others can change": replaced("open", func(file string) error {
			write(t, file, dead())
			return os.Chmod(file, 0o666)
		}),
		"an owner of more than 64 KiB": replaced("large", func(file string) error {
			text, err := json.Marshal(dead())
			must(err)
			return os.WriteFile(file, append(text, bytes.Repeat([]byte(" "), 64<<10)...), 0o600)
		}),
		"a directory in which others can write": noted(t, "everybodys", dead()),
		"a link to a directory":                 filepath.Join(os.TempDir(), dirPattern+"elsewhere"),
		"a pipe":                                filepath.Join(os.TempDir(), dirPattern+"nothing"),
	}
	must(
		os.Chmod(kept["a directory in which others can write"], 0o777),
		os.Symlink(elsewhere, kept["a link to a directory"]),
		syscall.Mkfifo(kept["a pipe"], 0o600),
	)
	if os.Geteuid() == 0 {
		const nobody = 65534
		kept["another user's directory"] = noted(t, "anothers", dead())
		must(os.Chown(kept["another user's directory"], nobody, nobody))
		kept["another user's note"] = noted(t, "foreign", dead())
		must(os.Chown(filepath.Join(kept["another user's note"], ownerFile), nobody, nobody))
	}
	removed := []string{noted(t, "private", dead()), noted(t, "passed-through", dead())}
	must(os.Chmod(removed[1], 0o711))
	swept := sweptInTime(t)
	slices.Sort(swept.Directories)
	slices.Sort(removed)
	if !slices.Equal(swept.Directories, removed) || len(swept.Processes) > 0 || len(swept.Skipped) > 0 {
		t.Errorf("swept %+v, want %v", swept, removed)
	}
	for what, dir := range kept {
		if _, err := os.Lstat(dir); err != nil {
			t.Errorf("%s was removed: %v", what, err)
		}
	}
}

// A note of ours names the process to end by its start and its program, too: another one may have
// got its pid.
func TestSweepEndsWhatWasStarted(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, test := range map[string]struct {
		change func(*owner)
		ends   bool
	}{
		"the server":                    {func(*owner) {}, true},
		"another has its pid":           {func(o *owner) { o.Since += "1" }, false},
		"another program":               {func(o *owner) { o.Programs = []string{"redis-server"} }, false},
		"its pid of an earlier boot":    {func(o *owner) { o.Boot += "x" }, false},
		"no pid is noted":               {func(o *owner) { o.Server = 0 }, false},
		"a noted process that is gone":  {func(o *owner) { o.Server = 1 << 30 }, false},
		"a process without a beginning": {func(o *owner) { o.Server, o.Since = 1<<30, "" }, false},
	} {
		bystander := exec.CommandContext(ctx, "sleep", "600")
		if err := bystander.Start(); err != nil {
			t.Fatal(err)
		}
		who := dead()
		who.Server, who.Since, who.Programs = bystander.Process.Pid, startTime(bystander.Process.Pid), []string{"sleep"}
		test.change(&who)
		noted(t, "pid", who)
		swept := sweptInTime(t)
		if ended := state(bystander.Process.Pid) == ""; ended != test.ends || len(swept.Directories) != 1 {
			t.Errorf("%s: ended %v, want %v; swept %+v", name, ended, test.ends, swept)
		}
		_ = bystander.Process.Kill()
		_ = bystander.Wait()
	}
}

// A server's user owns its working directory alone: what root writes of the server is not where
// that user can put a link in its place.
func TestTheServersUserPlantsNoLinks(t *testing.T) {
	const secret, untouched = "secret", "of root alone"
	if _, err := lookUp("nobody"); os.Geteuid() != 0 || err != nil {
		t.Skipf("only root runs servers as somebody else: %v", err)
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	target := filepath.Join(tmp, "target")
	err := os.WriteFile(target, []byte(untouched), 0o600)
	err = errors.Join(err, os.Chmod(tmp, 0o711), os.Chmod(filepath.Dir(tmp), 0o711))
	if err != nil {
		t.Fatal(err)
	}
	script := `for file in ` + strings.Join([]string{logFile, secret, ownerFile}, " ") + `; do
			ln -sf ` + target + ` $file; ln -sf ` + target + ` ../$file
		done 2>/dev/null
		cat ../` + secret + `; echo; echo ready as $(id -u); exec sleep 600`
	p, err := Start(t.Context(), Program{
		Name: "hostile", Path: "/bin/sh", User: "nobody",
		Args: func(*Process) []string { return []string{"-c", script} },
		Prepare: func(_ context.Context, p *Process) error {
			_, err := p.File(secret, "for the server")
			return err
		},
		Ready: func(ctx context.Context, p *Process) error {
			poll.Until(t, "the links are planted", func() bool { return strings.Contains(p.Log(ctx), "ready as") })
			return nil
		},
	}, FreePort, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if said := p.Log(t.Context()); said != "for the server\nready as 65534\n" {
		t.Errorf("it said %q: it reads its file, as nobody", said)
	}
	if err := p.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.File(secret, "another"); err != nil {
		t.Error(err)
	}
	if err := p.Again(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != untouched {
		t.Errorf("a file of root's is now %q, %v", text, err)
	}
}
