package servers

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/lockbench/lockbench/internal/launch"
)

// StartOwn starts a Redis with extra arguments: a process, which is faster, or a container if there
// is no redis-server. The caller closes it.
func StartOwn(ctx context.Context, options Options, args ...string) (Own, error) {
	launch.Sweep(ctx).Log(options.Logf) // a killed test binary leaves its Redis too
	p, err := options.startProcess(ctx, launch.FreePort, nil, args...)
	if err == nil {
		return p, nil
	}
	if !errors.Is(err, exec.ErrNotFound) {
		return nil, err
	}
	engine, err := launch.OpenEngine(ctx)
	if err == nil {
		var c *Container
		if c, err = startAnywhere(ctx, engine, options, args...); err == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no redis-server on PATH and no container (%w): install redis-server or start Docker", ErrUnreachable, err)
}

// startAnywhere starts a container of the best available image, on the best network.
func startAnywhere(ctx context.Context, engine launch.Engine, options Options, args ...string) (*Container, error) {
	name, err := engine.Obtain(ctx, image(options.wantedImage()), options.logf)
	if err != nil {
		return nil, err
	}
	return startContainer(ctx, engine, options, name, "", launch.FreePort, nil, args...)
}

// Quickest returns the Options.Address that starts fastest here: a process, or a container if there
// is no redis-server.
func Quickest() string {
	if _, err := lookProgram(""); err != nil {
		return "container"
	}
	return "process"
}
