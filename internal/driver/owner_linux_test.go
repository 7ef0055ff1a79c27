package driver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lockbench does not start a driver that another user could have created or changed. The error names the reason.
func TestUntrustedDriversAreNotStarted(t *testing.T) {
	const stranger = 54321
	for _, test := range []struct {
		name   string
		change func(t *testing.T, folder, file string) error
		says   string // "" if it is used
	}{
		{"ours", func(*testing.T, string, string) error { return nil }, ""},
		{
			"the file can be written by all", func(_ *testing.T, _, file string) error { return os.Chmod(file, 0o757) },
			"can be written by every user",
		},
		{
			"the folder can be written by all", func(_ *testing.T, folder, _ string) error { return os.Chmod(folder, 0o777) },
			"can be written by every user",
		},
		{"a sticky folder", func(_ *testing.T, folder, _ string) error {
			return os.Chmod(folder, 0o777|os.ModeSticky)
		}, ""},
		{
			"the file is another's", func(t *testing.T, _, file string) error { return owned(t, file, stranger, stranger) },
			"belongs to user 54321",
		},
		{"the folder is another's", func(t *testing.T, folder, _ string) error {
			return owned(t, folder, stranger, stranger)
		}, "belongs to user 54321"},
		{"another group may write", func(t *testing.T, _, file string) error {
			if err := owned(t, file, os.Geteuid(), stranger); err != nil {
				return err
			}
			return os.Chmod(file, 0o775)
		}, "can be written by group 54321"},
		{"the user's own group may write", func(t *testing.T, _, file string) error {
			if err := owned(t, file, os.Geteuid(), os.Geteuid()); err != nil {
				return err
			}
			return os.Chmod(file, 0o775)
		}, ""},
		{"a link to another's file", func(t *testing.T, folder, file string) error {
			target := filepath.Join(t.TempDir(), "target")
			if err := os.Rename(file, target); err != nil {
				return err
			}
			if err := owned(t, target, stranger, stranger); err != nil {
				return err
			}
			return os.Symlink(target, file)
		}, "belongs to user 54321"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "drivers")
			file := filepath.Join(folder, "mine")
			if err := os.Mkdir(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := test.change(t, folder, file); err != nil {
				t.Fatal(err)
			}
			t.Setenv(PathVariable, folder)
			_, err := resolve("mine")
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("%v, want %q", err, test.says)
			}
			if _, used := All()["mine"]; used != (test.says == "") {
				t.Errorf("it is used: %v", used)
			}
		})
	}
}

// owned changes the owner of a file. It skips the test if the change needs root and the test does not run as root.
func owned(t *testing.T, file string, user, group int) error {
	t.Helper()
	if os.Geteuid() != 0 && (user != os.Geteuid() || group != os.Getegid()) {
		t.Skip("only root can give files away")
	}
	return os.Chown(file, user, group)
}
