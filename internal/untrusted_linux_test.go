package internal_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/untrusted"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, size := range map[string]int64{"most": untrusted.MaxFile, "more": untrusted.MaxFile + 1} {
		if err := os.WriteFile(in(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(in(name), size); err != nil { // a sparse file, which takes no space on the disk
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(in("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", in("link")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		in("more"): "larger than 64 MiB", in("fifo"): "not a regular file",
		in("link"):  "not a regular file",
		"/dev/zero": "not a regular file", dir: "it is a directory", in("none"): "no such file",
	} {
		answer := make(chan error, 1)
		go func() {
			_, err := untrusted.ReadFile(name)
			answer <- err
		}()
		select {
		case err := <-answer:
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: no answer", name)
		}
	}
	if content, err := untrusted.ReadFile(in("most")); err != nil || len(content) != untrusted.MaxFile {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}
