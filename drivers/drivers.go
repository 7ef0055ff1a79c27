// Package drivers embeds the drivers of locks in other languages. The command "lockbench drivers install" writes them
// to disk.
package drivers

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
)

//go:embed install.sh aioredlock noop-node noop-python python-redis-lock redis-py redis-py-asyncio redis-semaphore
//go:embed redlock shedlock node/lockbench-driver.js node/package.json node/package-lock.json
//go:embed python/lockbench_driver.py python/requirements.txt
//go:embed redisson/driver redisson/pom.xml redisson/dependencies.sha256 redisson/src
var files embed.FS

// of maps each language to its drivers.
var of = map[string][]string{
	"python": {"aioredlock", "python-redis-lock", "redis-py", "redis-py-asyncio"},
	"node":   {"redis-semaphore", "redlock"},
	"java":   {"redisson", "shedlock"},
}

// Script is the bash script that installs the libraries of the drivers. It runs in the directory of the drivers, with
// languages as its arguments. It is not executable, because every executable file in that directory is a driver.
const Script = "install.sh"

// Languages returns the languages whose drivers can be installed.
func Languages() []string { return slices.Sorted(maps.Keys(of)) }

// Of returns the names of the drivers in a language, as in exec:NAME, or nil if the language has none.
func Of(language string) []string { return of[language] }

// Write writes all drivers below a directory and replaces older ones. Only the current user can change the written
// files.
func Write(directory string) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		to := filepath.Join(directory, filepath.FromSlash(name))
		switch {
		case err != nil:
		case entry.IsDir():
			err = os.MkdirAll(to, 0o755)
		default:
			err = write(name, to)
		}
		if err != nil {
			return fmt.Errorf("write the driver %s: %w", to, err)
		}
		return nil
	})
}

// write writes one file. A driver that is running keeps its old file.
func write(name, to string) error {
	content, err := files.ReadFile(name)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if bytes.HasPrefix(content, []byte("#!")) && name != Script {
		mode = 0o755
	}
	return renameio.WriteFile(to, content, mode)
}
