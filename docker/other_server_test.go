package docker_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The test gives another user control over a file or a directory of a server's program. other-server.sh must then
// refuse to start the program.
func TestUntrustedServerFilesAreNotStarted(t *testing.T) {
	const other = 65534
	for name, plant := range map[string]func(folder, program string) error{
		"":                             func(string, string) error { return nil },
		"a folder that all may change": func(folder, _ string) error { return os.Chmod(folder, 0o777) },
		"a folder of a group":          func(folder, _ string) error { return os.Chmod(folder, 0o770) },
		"a folder in it":               func(_, program string) error { return os.Chmod(filepath.Dir(program), 0o777) },
		"a program that all may change": func(_, program string) error {
			return os.Chmod(program, 0o777)
		},
		"another user's folder":  func(folder, _ string) error { return os.Chown(folder, other, other) },
		"another user's program": func(_, program string) error { return os.Chown(program, other, other) },
		"another user's link": func(folder, _ string) error {
			library := filepath.Join(folder, "libc.so")
			if err := os.Symlink("/dev/null", library); err != nil {
				return err
			}
			return os.Lchown(library, other, other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "another user") && os.Getuid() != 0 {
				t.Skip("only root can give a file to another user")
			}
			place := t.TempDir()
			folder, called := filepath.Join(place, "valkey"), filepath.Join(place, "called")
			program := filepath.Join(folder, "bin", "valkey-server")
			if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(program, []byte("#!/bin/sh\n: >"+called+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := plant(folder, program); err != nil {
				t.Fatal(err)
			}
			said, err := exec.Command("bash", "other-server.sh", "valkey-server", "trixie", folder).CombinedOutput()
			_, missing := os.Stat(called)
			started := missing == nil
			if theirs := name != ""; theirs != (err != nil) || theirs == started ||
				theirs != strings.Contains(string(said), "must belong to you") {
				t.Errorf("it said %s, %v; the server was started: %v", said, err, started)
			}
		})
	}
}
