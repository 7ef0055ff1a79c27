package redisserver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/launch"
)

// Own is a Redis that lockbench started, as a process or a container, and may therefore stop, kill
// and pause.
type Own struct {
	launch.Started
	Password string
	Rejoin   func(context.Context) error // called after a restart; nil if there is nothing to rejoin
}

// Save writes the server's data to disk for RestartWithData. A server that is already writing a snapshot, for example
// for a new replica, refuses to save; Save then repeats the command.
func (o *Own) Save(ctx context.Context) error {
	return Control(o.Addr(), o.Password, func(client *redis.Client) error {
		for {
			err := client.Save(ctx).Err()
			if err == nil {
				return nil
			}
			if !strings.Contains(err.Error(), "save already in progress") || ctx.Err() != nil {
				return fmt.Errorf("save the data of %s: %w", o.Addr(), err)
			}
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
}

// Restart kills the server if it runs, and starts it empty on the same port. A node of a cluster keeps its slots, and a
// replica its primary.
func (o *Own) Restart(ctx context.Context) error { return o.back(ctx, o.Anew(ctx)) }

// RestartWithData is like Restart, but the server starts with the data that was last saved, except keys whose TTL has
// expired since.
func (o *Own) RestartWithData(ctx context.Context) error {
	if err := o.Kill(ctx); err != nil {
		return err
	}
	return o.back(ctx, o.Again(ctx))
}

func (o *Own) back(ctx context.Context, err error) error {
	if err != nil || o.Rejoin == nil {
		return err
	}
	return o.Rejoin(ctx)
}

// Control sends commands to a server that lockbench started. It opens a new connection, because a pool that could not
// reach the server may wait up to a second before it dials again.
func Control(addr, password string, do func(*redis.Client) error) error {
	client := redis.NewClient(clientOptions(addr, password))
	defer client.Close()
	return do(client)
}

// clientOptions returns options for a client that sends each command once, without retries and without commands of its
// own.
func clientOptions(addr, password string) *redis.Options {
	return &redis.Options{
		Addr: addr, Password: password, MaxRetries: -1, DialerRetries: 1, PoolSize: 2, ContextTimeoutEnabled: true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
