package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
)

// member is a Redis of our own in a replicated topology. After a restart it has lost its role and
// must rejoin.
type member struct {
	Own
	rejoin func(context.Context) error
}

func (m member) Restart(ctx context.Context) error {
	if err := m.Own.Restart(ctx); err != nil {
		return err
	}
	return m.rejoin(ctx)
}

func (m member) RestartWithData(ctx context.Context) error {
	if err := m.Own.RestartWithData(ctx); err != nil {
		return err
	}
	return m.rejoin(ctx)
}

// newMember wraps a started node as a member.
func (s *Server) newMember(n *node, started Own) Own {
	return member{started, func(ctx context.Context) error { return s.rejoin(ctx, n) }}
}

// replicate makes the first node the primary of all others.
func (s *Server) replicate(ctx context.Context) error {
	s.primary.Store(s.nodes[0])
	for _, n := range s.nodes[1:] {
		if err := n.follow(ctx, s.nodes[0]); err != nil {
			return err
		}
	}
	return nil
}

// rejoin makes a restarted node a replica, unless it is the primary.
func (s *Server) rejoin(ctx context.Context, n *node) error {
	if lead := s.primary.Load(); lead != n {
		return n.follow(ctx, lead)
	}
	return nil
}

// follow makes n a replica of lead. It closes n's client connections, as Sentinel does, so that the
// clients look for the new primary.
func (n *node) follow(ctx context.Context, lead *node) error {
	host, port, err := net.SplitHostPort(lead.addr())
	if err != nil {
		return err
	}
	err = control(n.addr(), n.options.Password, func(client *redis.Client) error {
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

// Promote makes a node of our own replicated topology the primary; i is its place in Owned. The node
// has only what it had received. New connections of all clients then go to it; connections to
// the old primary break when it is killed or becomes a replica. A node that does not answer
// within a second keeps its state: a paused one, after Resume, is a second primary until Follow,
// as after a partition; a restarted one becomes a replica.
func (s *Server) Promote(ctx context.Context, i int) error {
	n, err := s.member(i)
	if err != nil {
		return err
	}
	err = control(n.addr(), n.options.Password, func(client *redis.Client) error { return client.Do(ctx, "REPLICAOF", "NO", "ONE").Err() })
	if err != nil {
		return fmt.Errorf("promote %s: %w", n.addr(), err)
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

// Detach disconnects a replica, by its place in Owned, from its primary. From then on it misses all
// writes, and would be promoted without them, like a replica behind a slow link. Follow ends
// this.
func (s *Server) Detach(ctx context.Context, i int) error {
	n, err := s.member(i)
	if err != nil {
		return err
	}
	if n == s.primary.Load() {
		return fmt.Errorf("%w: node %d is the primary, not a replica", ErrConfig, i)
	}
	const nobody = "1" // a port without a listener
	err = control(n.addr(), n.options.Password, func(client *redis.Client) error {
		return client.Do(ctx, "REPLICAOF", "127.0.0.1", nobody).Err()
	})
	if err != nil {
		return fmt.Errorf("detach %s: %w", n.addr(), err)
	}
	n.detached.Store(true)
	return nil
}

// Follow makes a node, by its place in Owned, a replica of the current primary.
func (s *Server) Follow(ctx context.Context, i int) error {
	n, err := s.member(i)
	if err != nil {
		return err
	}
	return s.rejoin(ctx, n)
}

// Primary returns the place in Owned of the current primary.
func (s *Server) Primary() int {
	lead := s.primary.Load()
	for i, n := range s.nodes {
		if n == lead {
			return i
		}
	}
	return 0
}

func (s *Server) member(i int) (*node, error) {
	if s.primary.Load() == nil || i < 0 || i >= len(s.nodes) || s.nodes[i].own == nil {
		return nil, fmt.Errorf("%w: there is no node %d of our own in a primary with replicas", ErrConfig, i)
	}
	return s.nodes[i], nil
}

// nudge makes the primary send something to its replicas. A primary that has just sent a replica its
// data may hold back writes for up to a second, until the replica's next message, and only a
// missing write shows that. nudge does nothing on a user's server.
func (s *Server) nudge(ctx context.Context) error {
	lead := s.primary.Load()
	if lead.own == nil {
		return nil
	}
	if err := lead.observer.Publish(ctx, "lockbench", "").Err(); err != nil {
		return fmt.Errorf("%w: write to the primary %s: %w", ErrUnreachable, lead.addr(), err)
	}
	return nil
}

// inSync returns an error unless every replica has what the primary has.
func (s *Server) inSync(ctx context.Context) error {
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
		if fields["role"] == "" || written == nil { // INFO is refused
			continue
		}
		received := fields.Integer("slave_repl_offset")
		if fields["master_link_status"] != "up" || received == nil || *received < *written {
			return errors.New("replica " + n.addr() + " is not in sync")
		}
	}
	return nil
}
