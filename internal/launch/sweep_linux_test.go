package launch

import (
	"context"
	"encoding/json"
	"errors"
	"os"
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
	must(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(dir, ownerFile), who)
	return dir
}

func write(t *testing.T, file string, who owner) {
	t.Helper()
	text, err := json.Marshal(who)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	must(t, err)
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
// it is a directory of ours in which nobody else can write.
func TestSweepTrustsOurOwnAlone(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, ownerFile), dead())
	replaced := func(name string, plant func(file string) error) string {
		dir := noted(t, name, dead())
		file := filepath.Join(dir, ownerFile)
		must(t, os.Remove(file), plant(file))
		return dir
	}
	kept := map[string]string{
		"a new directory without an owner":      replaced("new", func(string) error { return nil }),
		"a directory in which others can write": noted(t, "everybodys", dead()),
		"a link to a directory":                 filepath.Join(os.TempDir(), dirPattern+"elsewhere"),
		"a pipe":                                filepath.Join(os.TempDir(), dirPattern+"nothing"),
	}
	must(t,
		os.Chmod(kept["a directory in which others can write"], 0o777),
		os.Symlink(elsewhere, kept["a link to a directory"]),
		syscall.Mkfifo(kept["a pipe"], 0o600),
	)
	if os.Geteuid() == 0 {
		const nobody = 65534
		kept["another user's directory"] = noted(t, "anothers", dead())
		must(t, os.Chown(kept["another user's directory"], nobody, nobody))
	}
	removed := []string{
		noted(t, "private", dead()), noted(t, "passed-through", dead()),
		replaced("old", func(string) error { return nil }),
	}
	hourAgo := time.Now().Add(-time.Hour)
	must(t, os.Chmod(removed[1], 0o711), os.Chtimes(removed[2], hourAgo, hourAgo))
	swept := sweptInTime(t)
	slices.Sort(swept.Directories)
	slices.Sort(removed)
	if !slices.Equal(swept.Directories, removed) || len(swept.Skipped) > 0 {
		t.Errorf("swept %+v, want %v", swept, removed)
	}
	for what, dir := range kept {
		if _, err := os.Lstat(dir); err != nil {
			t.Errorf("%s was removed: %v", what, err)
		}
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
	must(t, err)
	script := `for file in ` + strings.Join([]string{logFile, secret, ownerFile}, " ") + `; do
			ln -sf ` + target + ` $file; ln -sf ` + target + ` ../$file
		done 2>/dev/null
		cat ../` + secret + `; echo; echo ready as $(id -u); exec sleep 600`
	p, err := Start(t.Context(), Server{
		Name: "hostile", Ports: program(t).Ports,
		Args: func(Place) []string { return []string{"-c", script} },
		Process: Program{Path: "/bin/sh", User: "nobody", Prepare: func(_ context.Context, p *Process) error {
			_, err := p.File(secret, "for the server")
			return err
		}},
		Ready: func(ctx context.Context, p Starting) error {
			poll.Until(t, "the links are planted", func() bool { return strings.Contains(p.Log(ctx), "ready as") })
			return nil
		},
	})
	must(t, err)
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if said := p.Log(t.Context()); said != "for the server\nready as 65534\n" {
		t.Errorf("it said %q: it reads its file, as nobody", said)
	}
	must(t, p.Kill(t.Context()))
	if _, err := p.File(secret, "another"); err != nil {
		t.Error(err)
	}
	must(t, p.Again(t.Context()))
	if text, err := os.ReadFile(target); err != nil || string(text) != untouched {
		t.Errorf("a file of root's is now %q, %v", text, err)
	}
}

// Only an owner that has certainly ended is dead.
func TestOwner(t *testing.T) {
	here := thisProcess("test")
	if here.dead() {
		t.Error("we live")
	}
	change := func(change func(*owner)) owner {
		o := here
		change(&o)
		return o
	}
	for name, test := range map[string]struct {
		owner owner
		dead  bool
	}{
		"the pid is another's now": {change(func(o *owner) { o.Started += "1" }), true},
		"nobody has the pid":       {change(func(o *owner) { o.PID = 1 << 30 }), true},
		"another host":             {change(func(o *owner) { o.Host += "x"; o.PID = 1 << 30 }), false},
		"another pid namespace":    {change(func(o *owner) { o.Space += "x"; o.PID = 1 << 30 }), false},
		"no owner at all":          {owner{}, false},
	} {
		if test.owner.dead() != test.dead {
			t.Errorf("%s: dead = %v", name, !test.dead)
		}
	}
}
