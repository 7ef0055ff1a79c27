package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// node is one Redis of a run.
type node struct {
	own      Own                    // nil for a user's
	options  redis.UniversalOptions // where it is and who we are there
	observer redis.UniversalClient  // looks at it, under a name of its own
	software software
	runID    string      // Redis's own: another after each start of it
	role     string      // when it was opened; "" where it does not say
	replID   string      // the history of writes, which replicas share with their primary
	detached atomic.Bool // from its primary, by ourselves
	kept     restartCounters
}

// The roles of a node.
const (
	primary = "primary"
	replica = "replica"
)

// addr is host:port or a socket's path.
func (n *node) addr() string { return n.options.Addrs[0] }

// contactTimeout bounds the first contact, so that a server out of reach is
// named within 5 s.
const contactTimeout = 4 * time.Second

// open makes the observer and asks the server what it is.
func (n *node) open(ctx context.Context, o *observed, runID string, slots chan struct{}) error {
	// Few are ever open. But a pool that has failed to dial as often as it may have
	// connections looks only once a second whether a server is back.
	const connections = 64
	options := n.clientOptions(&o.traffic, observerName(runID), connections, slots)
	n.observer = redis.NewUniversalClient(options)
	n.observer.AddHook(o)
	ctx, cancel := context.WithTimeout(ctx, contactTimeout)
	defer cancel()
	if err := n.identify(ctx); err != nil {
		if err = n.mismatched(ctx, err); errors.Is(err, ErrConfig) {
			return err // of another store, which says it all
		}
		return fmt.Errorf("%w: connect to %s: %w", sentinel(err), n.addr(), err)
	}
	if n.software.mode == "sentinel" {
		return fmt.Errorf("%w: %s is a Sentinel: give the addresses of the primary and its replicas", ErrConfig, n.addr())
	}
	return nil
}

// identify learns what the server is, from HELLO where INFO is refused.
func (n *node) identify(ctx context.Context) error {
	if err := n.observer.Ping(ctx).Err(); err != nil {
		return err
	}
	fields, greeted, err := n.learn(ctx)
	if err != nil {
		return err
	}
	n.runID, n.replID = fields["run_id"], fields["master_replid"]
	n.role = cmp.Or(role(fields["role"]), role(greeted["role"]))
	return nil
}

// role is what Redis calls master and slave, or replica in HELLO.
func role(said string) string {
	switch said {
	case "master":
		return primary
	case "slave", replica:
		return replica
	default:
		return ""
	}
}

func (n *node) disconnect() error {
	if n.observer == nil {
		return nil
	}
	if err := n.observer.Close(); err != nil {
		return fmt.Errorf("disconnect from %s: %w", n.addr(), err)
	}
	return nil
}

// observerName is the CLIENT name of a run's observer. Those of its clients
// begin with it: while one is connected the run lives.
func observerName(runID string) string { return "lockbench:" + runID }
