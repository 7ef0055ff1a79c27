package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// startTimeout bounds a start on the slowest of machines; 100 ms is usual.
	startTimeout = 20 * time.Second
	// reachTimeout is how long a server that calls itself ready may stay silent
	// before it counts as being out of reach, on another loopback interface than
	// ours for example.
	reachTimeout = 2 * time.Second
)

// errOutOfReach says that a server runs but cannot be reached from here.
var errOutOfReach = errors.New("it runs but does not answer at its address")

// starting is a redis-server that has just been started.
type starting interface {
	log(ctx context.Context) string
	ended(ctx context.Context) bool
}

// awaitReady waits for Redis to say in its log that it is ready, so that no
// stranger on the same port is taken for it, and then for an answer. When Redis
// ends instead, the error is the last line of its log.
func awaitReady(ctx context.Context, addr string, server starting) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var ready time.Time
	for {
		switch {
		case !ready.IsZero() && answers(ctx, addr):
			return nil
		case !ready.IsZero() && time.Since(ready) > reachTimeout:
			return fmt.Errorf("%w %s", errOutOfReach, addr)
		case ready.IsZero() && strings.Contains(server.log(ctx), "Ready to accept"):
			ready = time.Now()
			continue
		case ctx.Err() != nil:
			return fmt.Errorf("it is not ready: %w (%s)", context.Cause(ctx), lastLine(server.log(context.WithoutCancel(ctx))))
		case server.ended(ctx):
			return errors.New(lastLine(server.log(ctx)))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// lastLine is what a log says in the end.
func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return "it said nothing"
}
