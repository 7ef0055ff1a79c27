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

// Own is a Redis that lockbench started, as a process or a container, and may therefore stop, kill
// and pause.
type Own interface {
	// Addr is host:port.
	Addr() string
	// Kill ends it at once, as a crash does; unsaved data is lost.
	Kill(ctx context.Context) error
	// Pause stops it (SIGSTOP) with all connections open; Resume continues it.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	// Save writes its data to disk for RestartWithData.
	Save(ctx context.Context) error
	// Restart kills it if it runs, and starts it empty on the same port. A node of a cluster keeps
	// its slots, a replica its primary.
	Restart(ctx context.Context) error
	// RestartWithData is Restart with the data last saved, without keys whose TTL has passed
	// meanwhile.
	RestartWithData(ctx context.Context) error
	// Close ends it and removes all its files.
	Close(ctx context.Context) error
}

// settings returns the settings of every server that lockbench starts. Nothing is written to disk,
// so that no fork or fsync disturbs a window, and many clients may connect. Redis lowers
// maxclients itself if the limit of open files is smaller.
func settings(bind string, port int) []string {
	return []string{
		"--bind", bind, "--port", strconv.Itoa(port),
		"--save", "", "--appendonly", "no",
		"--maxclients", strconv.Itoa(maxClients), "--tcp-backlog", "4096",
	}
}

const maxClients = 60000

// secrets is the name of the configuration file of a server with a password: other users of the
// machine can read arguments, not the file.
const secrets = "password.conf"

// secretSettings are its lines. A replica sends the password to its primary.
func secretSettings(password string) string {
	return "requirepass " + password + "\nmasterauth " + password + "\n"
}

// snapshot is the file that SAVE writes in the server's working directory.
const snapshot = "dump.rdb"

// save makes the server at addr write its snapshot. A server that is already writing one, such as
// a primary for a new replica, refuses: then save repeats the command.
func save(ctx context.Context, addr, password string) error {
	return control(addr, password, func(client *redis.Client) error {
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

// saveAgain is the pause before save repeats the command.
const saveAgain = 10 * time.Millisecond

// control sends commands to a server of our own over a new connection: a pool that could not reach
// the server may not dial again for up to a second.
func control(addr, password string, do func(*redis.Client) error) error {
	client := redis.NewClient(&redis.Options{
		Addr: addr, Password: password, MaxRetries: -1, DialerRetries: 1, PoolSize: 1, ContextTimeoutEnabled: true, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer client.Close()
	return do(client)
}
