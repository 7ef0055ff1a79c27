package lockbench

import (
	"context"
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/store/redis"
)

// Clean removes what lockbenches that were killed have left: containers and
// server processes on this machine, and keys on the server at the address,
// if one is given. It says what it removed and what it could not look at. What
// belongs to a lockbench that still runs is left alone.
func Clean(ctx context.Context, at StoreOptions) ([]string, error) {
	swept, err := redis.Sweep(ctx, at.options())
	var lines []string
	for _, id := range swept.Containers {
		lines = append(lines, "removed container "+id)
	}
	for _, pid := range swept.Processes {
		lines = append(lines, fmt.Sprintf("ended server process %d", pid))
	}
	for _, directory := range swept.Directories {
		lines = append(lines, "removed directory "+directory)
	}
	if swept.Keys > 0 {
		lines = append(lines, fmt.Sprintf("removed %d keys of dead runs %s", swept.Keys, strings.Join(swept.Runs, ", ")))
	}
	for _, why := range swept.Skipped {
		lines = append(lines, "not looked at: "+why)
	}
	return lines, err
}
