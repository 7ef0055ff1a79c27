// Package drivers has the drivers of locks in other languages as files, for lockbench drivers install.
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

// of are the drivers by the language of their libraries.
var of = map[string][]string{
	"python": {"aioredlock", "python-redis-lock", "redis-py", "redis-py-asyncio"},
	"node":   {"redis-semaphore", "redlock"},
	"java":   {"redisson", "shedlock"},
}

// Script is the file that bash runs in the directory, with languages as its arguments, to get their libraries. It is not
// executable, because every executable file there is a driver.
const Script = "install.sh"

// Languages returns those whose drivers can be installed.
func Languages() []string { return slices.Sorted(maps.Keys(of)) }

// Of returns the names of a language's drivers.
func Of(language string) []string { return of[language] }

// Write writes all drivers below a directory, in place of older ones. Only this user may then change them.
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

// write writes one file. A driver that runs keeps the old one.
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
