// Package presets has workloads by name, for common uses of a lock, from a hot one to a flash
// sale.
package presets

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/workloads"
)

//go:embed *.yaml
var files embed.FS

// Names returns the names of all presets, in alphabetical order.
func Names() []string {
	entries, _ := files.ReadDir(".") // what is embedded can be read
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	return names
}

// Open reads the preset of that name, or else the file. Its error names everything that is wrong,
// with file and option.
func Open(name string) (*workloads.File, error) {
	if slices.Contains(Names(), name) {
		preset := name + ".yaml"
		text, err := files.ReadFile(preset)
		if err != nil {
			return nil, fmt.Errorf("--workload %s: %w", name, err)
		}
		return workloads.ReadFile(preset, text)
	}
	text, err := untrusted.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--workload: there is neither a file nor a preset %q (presets: %s)", name,
			strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("--workload: %w", err)
	}
	return workloads.ReadFile(untrusted.Printable(name), text)
}
