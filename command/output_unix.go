//go:build unix

package command

import (
	"path/filepath"

	"github.com/google/renameio/v2"
)

// overwrite atomically replaces a file, keeping its mode, or creates it.
func overwrite(file string, content []byte) error {
	return renameio.WriteFile(file, content, 0o666, nextTo(file))
}

// replaceable returns an error if overwrite could not create its temporary file.
func replaceable(file string) error {
	f, err := renameio.NewPendingFile(file, nextTo(file))
	if err != nil {
		return err
	}
	return f.Cleanup()
}

// nextTo makes renameio create the temporary file in the directory of the target, so that it inherits the group of a
// setgid directory. By default renameio uses $TMPDIR if it is on the same file system.
func nextTo(file string) renameio.Option { return renameio.WithTempDir(filepath.Dir(file)) }
