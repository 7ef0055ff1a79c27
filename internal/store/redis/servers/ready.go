package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/replies"
)

const (
	// reachTimeout is how long a server that is ready by its log may be silent before it counts as
	// unreachable, for example on another loopback interface than ours.
	reachTimeout = 2 * time.Second
)

// awaitReady waits until the started server answers PING, and not another server on the same port:
// is checks by the INFO that it is ours. If the server needs another password, its log decides. If
// it ends instead, the error is the last line of its log.
func awaitReady(ctx context.Context, server launch.Starting, password string, is func(replies.Info) bool) error {
	ctx, cancel := context.WithTimeout(ctx, launch.StartTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var ready time.Time // by the log
	for {
		said := strings.Contains(server.Log(ctx), "Ready to accept")
		if said && ready.IsZero() {
			ready = time.Now()
		}
		fields, secret := who(ctx, server.Addr(), password)
		switch {
		case fields != nil && is(fields), secret && said:
			return nil
		case said && time.Since(ready) > reachTimeout:
			return fmt.Errorf("%w %s", launch.ErrOutOfReach, server.Addr())
		case ctx.Err() != nil:
			return fmt.Errorf("it is not ready: %w (%s)", context.Cause(ctx), launch.LastLine(server.Log(context.WithoutCancel(ctx))))
		case server.Ended(ctx):
			return errors.New(launch.LastLine(server.Log(ctx)))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// who sends PING and INFO to the server at addr; fields is nil if INFO gives nothing. secret says
// that the server needs another password.
func who(ctx context.Context, addr, password string) (fields replies.Info, secret bool) {
	if !answers(ctx, addr) {
		return nil, false
	}
	err := control(addr, password, func(client *redis.Client) error {
		var err error
		fields, err = readInfo(ctx, client, "server")
		return err
	})
	if err != nil || fields["process_id"] == "" {
		return nil, err != nil && refused(err) || err == nil
	}
	return fields, false
}
