package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
)

// member is a Redis of our own in a replicated topology: after a restart it
// knows nothing of that any more and is told again.
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

// newMember is a node that was started to be one of them.
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

// rejoin makes a node that came back a replica, unless it is the primary.
func (s *Server) rejoin(ctx context.Context, n *node) error {
	if lead := s.primary.Load(); lead != n {
		return n.follow(ctx, lead)
	}
	return nil
}

// follow makes n a replica of lead and closes the connections of its clients, as
// Sentinel does, so that they look for the new primary.
func (n *node) follow(ctx context.Context, lead *node) error {
	host, port, err := net.SplitHostPort(lead.addr())
	if err != nil {
		return err
	}
	err = control(n.addr(), func(client *redis.Client) error {
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

// Promote makes a node of our own replicated topology the primary, i being its
// place in Owned, with whatever it has received so far. New connections of all
// clients then go to it; connections to the old primary break when that is
// killed, or told here to follow. A node that does not answer within a second is
// left as it is: a paused one, when resumed, is a primary too until Follow, as
// behind a partition; a restarted one follows.
func (s *Server) Promote(ctx context.Context, i int) error {
	n, err := s.member(i)
	if err != nil {
		return err
	}
	err = control(n.addr(), func(client *redis.Client) error { return client.Do(ctx, "REPLICAOF", "NO", "ONE").Err() })
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
				_ = other.follow(ctx, n) // it may be dead, that is what promotions are for
			})
		}
	}
	wg.Wait()
	return ctx.Err()
}

// Detach has a replica, by its place in Owned, hear no more of its primary: from then
// on it lags by all that is written, and is promoted with what it had, as one behind
// a slow link would be. Follow brings it back.
func (s *Server) Detach(ctx context.Context, i int) error {
	n, err := s.member(i)
	if err != nil {
		return err
	}
	if n == s.primary.Load() {
		return fmt.Errorf("%w: node %d is the primary, not a replica", ErrConfig, i)
	}
	const nobody = "1" // the port on which nothing listens
	err = control(n.addr(), func(client *redis.Client) error {
		return client.Do(ctx, "REPLICAOF", "127.0.0.1", nobody).Err()
	})
	if err != nil {
		return fmt.Errorf("detach %s: %w", n.addr(), err)
	}
	n.detached.Store(true)
	return nil
}

// Follow makes a node, by its place in Owned, a replica of the present primary.
func (s *Server) Follow(ctx context.Context, i int) error {
	n, err := s.member(i)
	if err != nil {
		return err
	}
	return s.rejoin(ctx, n)
}

// Primary is the place in Owned of the node that is the primary now.
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

// nudge gives the primary something to pass on. One that has just sent a replica
// its data may hold back what is written until the replica's next word, up to a
// second later, and nothing but a write that does not arrive shows it. A user's
// server is left alone.
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

// inSync says whether every replica has what the primary has.
func (s *Server) inSync(ctx context.Context) error {
	lead := s.primary.Load()
	fields, err := readInfo(ctx, lead.observer, "replication")
	if err != nil {
		return err
	}
	written := fields.Integer("master_repl_offset")
	for _, n := range s.nodes {
		if n == lead || n.detached.Load() || n.ping(ctx, patience) != nil { // one that is down is not waited for
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
