//go:build unix

package command

import (
	"path/filepath"

	"github.com/google/renameio/v2"
)

// overwrite replaces a file by a new one with the same rights, or makes one.
func overwrite(file string, content []byte) error {
	return renameio.WriteFile(file, content, 0o666, nextTo(file))
}

// replaceable returns an error if overwrite could not make the new file.
func replaceable(file string) error {
	f, err := renameio.NewPendingFile(file, nextTo(file))
	if err != nil {
		return err
	}
	return f.Cleanup()
}

// nextTo places the new file in the folder of the old one, which may give it a group. By default it would be made in
// the directory for temporary files if both are on one file system.
func nextTo(file string) renameio.Option { return renameio.WithTempDir(filepath.Dir(file)) }
