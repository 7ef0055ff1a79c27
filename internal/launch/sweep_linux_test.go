package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
)

// left creates the home directory of a server whose lockbench has ended, and returns its path. name is the end of the
// directory's name.
func left(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), homeOfProcess+name)
	must(t, os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, logFile), nil, 0o600))
	return dir
}

// sweptInTime runs a sweep and returns its result. If the sweep blocks, for example on a file that another user has
// planted, the test fails after a minute.
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

// Every user can create files in the directory for temporary files. Sweep must remove only directories that belong to
// this user and that no other user can write to.
func TestSweepTrustsOnlyOwnDirectories(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	kept := map[string]string{
		"a directory in which others can write": left(t, "everybodys"),
		"a link to a directory":                 filepath.Join(os.TempDir(), homeOfProcess+"elsewhere"),
		"a pipe":                                filepath.Join(os.TempDir(), homeOfProcess+"nothing"),
		"the home of a container":               filepath.Join(os.TempDir(), homeOfContainer+"left"),
	}
	must(t,
		os.Chmod(kept["a directory in which others can write"], 0o777),
		os.Symlink(t.TempDir(), kept["a link to a directory"]),
		syscall.Mkfifo(kept["a pipe"], 0o600),
		os.Mkdir(kept["the home of a container"], 0o700),
	)
	if os.Geteuid() == 0 {
		const nobody = 65534
		kept["another user's directory"] = left(t, "anothers")
		must(t, os.Chown(kept["another user's directory"], nobody, nobody))
	}
	removed := []string{left(t, "private"), left(t, "passed-through")}
	must(t, os.Chmod(removed[1], 0o711))
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

// A server's user owns only the working directory. lockbench writes its files for the server outside that directory, so
// that this user cannot replace them with links to root's files.
func TestServerUserCannotPlantLinks(t *testing.T) {
	const secret, untouched = "secret", "of root alone"
	if _, err := lookUp("nobody"); os.Geteuid() != 0 || err != nil {
		t.Skipf("only root runs servers as another user: %v", err)
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	target := filepath.Join(tmp, "target")
	err := os.WriteFile(target, []byte(untouched), 0o600)
	err = errors.Join(err, os.Chmod(tmp, 0o711), os.Chmod(filepath.Dir(tmp), 0o711))
	must(t, err)
	script := `for file in ` + strings.Join([]string{logFile, secret}, " ") + `; do
			ln -sf ` + target + ` $file; ln -sf ` + target + ` ../$file
		done 2>/dev/null
		cat ../` + secret + `; echo; echo ready as $(id -u); exec sleep 600`
	p, err := Start(t.Context(), Definition{
		Name: "hostile", Ports: program(t).Ports,
		Args: func(Location) []string { return []string{"-c", script} },
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

// A home must count as abandoned once its owner has released the home's lock. Only one sweep at a time may then lock
// the home.
func TestHome(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	home, err := HomeOfContainer()
	must(t, err)
	if _, left := Abandoned(home.Dir); left {
		t.Error("this process has it")
	}
	home.Leave()
	sweeper, left := Abandoned(home.Dir)
	if !left {
		t.Fatal("its lock has ended")
	}
	if _, left := Abandoned(home.Dir); left {
		t.Error("a sweep has it")
	}
	must(t, sweeper.Remove())
	if _, left := Abandoned(home.Dir); left {
		t.Error("it was removed")
	}
	anything := t.TempDir()
	t.Chdir(os.TempDir())
	must(t, os.Mkdir(homeOfContainer+"relative", 0o700))
	for _, dir := range []string{"", anything, homeOfContainer + "relative", newProcessHome(t)} {
		if _, left := Abandoned(dir); left {
			t.Errorf("%q is the home of a container", dir)
		}
	}
}

func newProcessHome(t *testing.T) string {
	t.Helper()
	home, err := newHome(homeOfProcess)
	must(t, err)
	home.Leave()
	return home.Dir
}

// Sweeps that run while homes are being created must not remove any of these homes.
func TestSweepDuringHomeCreation(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	made := make(chan struct{})
	var sweeps sync.WaitGroup
	for range 4 {
		sweeps.Go(func() {
			for {
				select {
				case <-made:
					return
				default:
					if swept := Sweep(t.Context()); len(swept.Skipped) > 0 {
						t.Errorf("skipped %v", swept.Skipped)
					}
				}
			}
		})
	}
	var homes []Home
	for range 500 {
		home, err := newHome(homeOfProcess)
		must(t, err)
		homes = append(homes, home)
	}
	close(made)
	sweeps.Wait()
	for _, home := range homes {
		if _, err := os.Stat(home.Dir); err != nil {
			t.Errorf("it was swept: %v", err)
		}
		must(t, home.Remove())
	}
}
