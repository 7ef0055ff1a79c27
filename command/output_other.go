//go:build !unix

package command

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2/maybe"
)

// overwrite writes a file in place, because this system cannot replace a file atomically.
func overwrite(file string, content []byte) error { return maybe.WriteFile(file, content, 0o666) }

// replaceable returns an error if no new file can be created in the file's directory.
func replaceable(file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+"*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
