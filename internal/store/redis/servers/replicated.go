package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch/redisserver"
	"github.com/lockbench/lockbench/internal/store"
)

// replicated is the arrangement of one primary with its replicas.
type replicated struct{ single }

// settings lets replicas attach without delay and without a file on disk.
func (replicated) settings() []string {
	return []string{"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"}
}

func (replicated) linked() bool { return true }

func (replicated) spares(s *Server, away []*node) bool {
	return !slices.Contains(away, s.primary.Load())
}

// arrange makes the first node the primary of all others.
func (replicated) arrange(ctx context.Context, s *Server) error {
	s.primary.Store(s.nodes[0])
	for _, n := range s.nodes[1:] {
		if err := n.follow(ctx, s.nodes[0]); err != nil {
			return err
		}
	}
	return nil
}

// rejoin makes a restarted node a replica of the primary, unless the node is the primary or there is no primary.
func (s *Server) rejoin(ctx context.Context, n *node) error {
	if lead := s.primary.Load(); lead != nil && lead != n {
		return n.follow(ctx, lead)
	}
	return nil
}

// follow makes n a replica of lead. It closes the connections of n's clients, as Sentinel does, so that the clients
// connect to the primary.
func (n *node) follow(ctx context.Context, lead *node) error {
	host, port, err := net.SplitHostPort(lead.addr())
	if err != nil {
		return err
	}
	err = redisserver.Control(n.addr(), n.options.Password, func(client *redis.Client) error {
		_, err := client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
			tx.Do(ctx, "REPLICAOF", host, port)
			tx.Do(ctx, "CLIENT", "KILL", "TYPE", "normal")
			tx.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub")
			return nil
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("make %s a replica of %s: %w", n.addr(), lead.addr(), err)
	}
	n.detached.Store(false)
	return nil
}

func (n *node) replicaOf(ctx context.Context, host, port string) error {
	err := redisserver.Control(n.addr(), n.options.Password, func(client *redis.Client) error {
		return client.Do(ctx, "REPLICAOF", host, port).Err()
	})
	if err != nil {
		return fmt.Errorf("%s REPLICAOF %s %s: %w", n.addr(), host, port, err)
	}
	return nil
}

// promote makes n the primary of a replicated topology that lockbench started. n has only the data that it has
// received. From then on, every new connection of a client is dialled to n. Connections to the old primary break when
// that node is killed or becomes a replica. promote does not change a node that does not reply within a second. After
// Resume, a paused old primary is therefore a second primary until it rejoins, as after a partition. A restarted node
// becomes a replica.
func (s *Server) promote(ctx context.Context, n *node) error {
	if err := n.replicaOf(ctx, "NO", "ONE"); err != nil {
		return err
	}
	n.detached.Store(false)
	s.primary.Store(n)
	var wg sync.WaitGroup
	for _, other := range s.nodes {
		if other != n {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, patience)
				defer cancel()
				_ = other.follow(ctx, n) // it may be dead, which is the usual reason for a promotion
			})
		}
	}
	wg.Wait()
	return ctx.Err()
}

// detach disconnects a replica from its primary. From then on the replica misses all writes, like a replica behind a
// slow link, and a promotion would lose those writes. rejoin ends this state.
func (n *node) detach(ctx context.Context) error {
	const nobody = "1" // a port without a listener
	if err := n.replicaOf(ctx, "127.0.0.1", nobody); err != nil {
		return err
	}
	n.detached.Store(true)
	return nil
}

// nudge writes to a primary that lockbench started, so that the primary sends data to its replicas. Without this write,
// a primary that has just synchronised a replica may hold back later writes for up to a second, until the replica's
// next message.
func (s *Server) nudge(ctx context.Context) error {
	lead := s.primary.Load()
	if lead == nil || lead.own == nil {
		return nil
	}
	if err := lead.observer.Publish(ctx, "lockbench", "").Err(); err != nil {
		return fmt.Errorf("%w: write to the primary %s: %w", ErrUnreachable, lead.addr(), err)
	}
	return nil
}

// settled returns an error unless every replica has all data of the primary. It ignores replicas that are detached or
// down.
func (replicated) settled(ctx context.Context, s *Server) error {
	lead := s.primary.Load()
	fields, err := readInfo(ctx, lead.observer, "replication")
	if err != nil {
		return err
	}
	written := fields.Integer("master_repl_offset")
	for _, n := range s.nodes {
		if n == lead || n.detached.Load() || n.ping(ctx, patience) != nil { // do not wait for a node that is down
			continue
		}
		fields, err := readInfo(ctx, n.observer, "replication")
		if err != nil {
			return err
		}
		if fields["role"] == "" || written == nil { // the server refuses INFO
			continue
		}
		received := fields.Integer("slave_repl_offset")
		if fields["master_link_status"] != "up" || received == nil || *received < *written {
			return errors.New("replica " + n.addr() + " is not in sync")
		}
	}
	return nil
}

// toPrimary wraps a dialer. In a replicated topology the result dials the current primary instead of the given address,
// like a host name that follows a failover. During a failover it waits until the failover has ended. In other
// topologies it dials the address that the Sentinels return, if there are any, or else the given address.
func (s *Server) toPrimary(dial store.Dialer) store.Dialer {
	if s.topology.Kind != Replicated {
		return s.nodes[0].watchers.through(dial)
	}
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		s.failing.RLock()
		defer s.failing.RUnlock()
		return dial(ctx, network, s.primary.Load().addr())
	}
}

// failover kills the primary of a replicated topology that lockbench started, and then promotes the node that heir
// returns. The promoted node has only the data that it had received before. If the old primary is restarted, it becomes
// a replica.
func (s *Server) failover(ctx context.Context, heir func(context.Context) (*node, error)) error {
	s.failing.Lock()
	defer s.failing.Unlock()
	if err := s.primary.Load().own.Kill(ctx); err != nil {
		return err
	}
	next, err := heir(ctx)
	if err != nil {
		return err
	}
	return s.promote(ctx, next)
}

// advanced returns the replica with the largest replication offset. Among replicas of the same priority, Sentinel also
// prefers the one with the largest offset.
func (s *Server) advanced(ctx context.Context) (*node, error) {
	var best *node
	most := int64(-1)
	for _, n := range s.nodes {
		if n == s.primary.Load() {
			continue
		}
		fields, err := readInfo(ctx, n.observer, "replication")
		if err != nil {
			return nil, fmt.Errorf("read the replication offset of replica %s: %w", n.addr(), err)
		}
		if received := fields.Integer("slave_repl_offset"); received != nil && *received > most {
			best, most = n, *received
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%w: no replica reports its replication offset", ErrConfig)
	}
	return best, nil
}
