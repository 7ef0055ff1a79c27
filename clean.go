package lockbench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/runner"
)

// Clean removes what killed lockbenches have left: containers and server processes on
// this machine, and keys or schemas on the server at the address, if one is given. It
// returns what it removed and what it could not look at. It leaves alone what belongs
// to a running lockbench.
func Clean(ctx context.Context, at StoreOptions) ([]string, error) {
	swept, on, err := runner.Sweep(ctx, at.options())
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
	if on.Found > 0 {
		lines = append(lines, fmt.Sprintf("removed %s of dead runs %s", on.Count(), strings.Join(on.Runs, ", ")))
	}
	for _, why := range append(swept.Skipped, on.Skipped...) {
		lines = append(lines, "not looked at: "+why)
	}
	return lines, errors.Join(err, ctx.Err())
}
