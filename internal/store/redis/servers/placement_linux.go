package servers

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"github.com/lockbench/lockbench/internal/launch"
)

// isServer says whether a process of this machine is a Redis whose command line contains that port;
// "" matches any.
func isServer(pid int, port string) bool {
	if pid <= 0 {
		return false
	}
	if !launch.Runs(pid, known...) {
		return false
	}
	title, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && bytes.Contains(title, []byte(port))
}
