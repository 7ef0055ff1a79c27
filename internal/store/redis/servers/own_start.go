package servers

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
)

// StartOwn starts a Redis with extra arguments: a process, which is quickest, or
// a container where there is no redis-server. The caller closes it.
func StartOwn(ctx context.Context, options Options, args ...string) (Own, error) {
	sweepLocal(ctx).log(options) // a test binary that was killed leaves its Redis too
	p := &Process{args: args, env: options.Env}
	err := p.open(ctx, freePort, options.RunID)
	if err == nil {
		return p, nil
	}
	if !errors.Is(err, exec.ErrNotFound) {
		return nil, err
	}
	d, err := openDocker(ctx)
	if err == nil {
		var c *Container
		if c, err = startContainer(ctx, d, options, nil, args...); err == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no redis-server on PATH and no container (%w): install redis-server or start Docker", ErrUnreachable, err)
}

// Quickest is the Options.Address of what starts quickest here: a process, or a
// container where there is no redis-server.
func Quickest() string {
	if _, err := lookProgram(); err != nil {
		return "container"
	}
	return "process"
}
