package servers

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Own is a Redis that lockbench started itself and may therefore stop, kill
// and pause: a process or a container.
type Own interface {
	// Addr is host:port.
	Addr() string
	// Kill ends it at once, as a crash would; what it had not saved is lost.
	Kill(ctx context.Context) error
	// Pause stops it in its tracks (SIGSTOP) with all connections open; Resume
	// lets it go on.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	// Save writes what it holds to its disk, for a restart with data.
	Save(ctx context.Context) error
	// Restart starts it again, empty and on the same port, killing it first if
	// it runs. A cluster's node keeps its slots, a replica its primary.
	Restart(ctx context.Context) error
	// RestartWithData is a Restart with what was last saved; keys whose TTL has
	// passed meanwhile are gone.
	RestartWithData(ctx context.Context) error
	// Close ends it and removes every trace of it.
	Close(ctx context.Context) error
}

// settings are those of every server lockbench starts: nothing is written to
// disk, so that no fork or fsync falls into a window, and many may connect.
// Redis lowers maxclients by itself where the file limit is smaller.
func settings(bind string, port int) []string {
	return []string{
		"--bind", bind, "--port", strconv.Itoa(port),
		"--save", "", "--appendonly", "no",
		"--maxclients", strconv.Itoa(maxClients), "--tcp-backlog", "4096",
	}
}

const maxClients = 60000

// snapshot is the file that SAVE writes into the server's working directory.
const snapshot = "dump.rdb"

// save has the server at addr write its snapshot. One that is writing one already, as
// a primary does for a replica that has just come, refuses: then it is asked again.
func save(ctx context.Context, addr string) error {
	return control(addr, func(client *redis.Client) error {
		for {
			err := client.Save(ctx).Err()
			if err == nil {
				return nil
			}
			if !strings.Contains(err.Error(), "save already in progress") || ctx.Err() != nil {
				return fmt.Errorf("save the data of %s: %w", addr, err)
			}
			select {
			case <-time.After(saveAgain):
			case <-ctx.Done():
			}
		}
	})
}

// saveAgain is how long a server is left alone that is saving.
const saveAgain = 10 * time.Millisecond

// control tells a server of our own something over a connection of its own: a
// pool that met a dead server refuses for up to a second to look again.
func control(addr string, do func(*redis.Client) error) error {
	client := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, DialerRetries: 1, PoolSize: 1, ContextTimeoutEnabled: true, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer client.Close()
	return do(client)
}
