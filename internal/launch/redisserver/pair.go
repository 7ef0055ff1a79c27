package redisserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
)

// Pair is a server and its replica, which can swap roles. Only Dial and Primary may be called concurrently.
type Pair struct {
	*Own         // the first primary
	Replica *Own // nil before Replicate

	start   func(context.Context) (*Own, error)
	primary atomic.Pointer[Own]
}

// NewPair returns a Pair that has no replica yet. Replicate calls start to start the replica.
func NewPair(first *Own, start func(context.Context) (*Own, error)) *Pair {
	p := &Pair{Own: first, start: start}
	p.primary.Store(first)
	return p
}

// Primary returns the current primary.
func (p *Pair) Primary() *Own { return p.primary.Load() }

// Dial dials the current primary instead of the given address, like a host name that follows a failover.
func (p *Pair) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, p.Primary().Addr())
}

// Replicate starts the replica, unless it runs, and returns once the replica has all data of the primary.
func (p *Pair) Replicate(ctx context.Context) (err error) {
	if p.Replica == nil {
		if p.Replica, err = p.start(ctx); err != nil {
			return err
		}
		host, port, err := net.SplitHostPort(p.Addr())
		if err != nil {
			return err
		}
		if err := errors.Join(p.Own.sendCommand(ctx, "CONFIG", "SET", "repl-diskless-sync-delay", "0"),
			p.Replica.sendCommand(ctx, "REPLICAOF", host, port)); err != nil {
			return err
		}
	}
	lead, _ := p.roles()
	about, err := lead.replication(ctx)
	if err != nil {
		return err
	}
	written := about.Integer("master_repl_offset")
	return p.until(ctx, "follows", func(_, replica replies.Info) bool {
		has := replica.Integer("slave_repl_offset")
		return replica["master_link_status"] == "up" && written != nil && has != nil && *has >= *written
	})
}

// FailOver makes the replica the primary without a loss of data. It closes no connections.
func (p *Pair) FailOver(ctx context.Context) error {
	if err := p.Replicate(ctx); err != nil {
		return err
	}
	old, heir := p.roles()
	if err := old.sendCommand(ctx, "FAILOVER"); err != nil {
		return err
	}
	err := p.until(ctx, "is the primary", func(old, heir replies.Info) bool {
		return old["role"] == "slave" && heir["role"] == "master"
	})
	if err == nil {
		p.primary.Store(heir)
	}
	return err
}

// FailOverAsSentinel calls FailOver and then closes the clients' connections to the former primary, so that the clients
// connect to the new primary. Redis Sentinel does the same when it makes a server a replica.
func (p *Pair) FailOverAsSentinel(ctx context.Context) error {
	if err := p.FailOver(ctx); err != nil {
		return err
	}
	_, former := p.roles()
	return errors.Join(former.sendCommand(ctx, "CLIENT", "KILL", "TYPE", "normal"),
		former.sendCommand(ctx, "CLIENT", "KILL", "TYPE", "pubsub"))
}

// Close kills both servers and removes their files.
func (p *Pair) Close(ctx context.Context) error {
	if p.Replica == nil {
		return p.Own.Close(ctx)
	}
	return errors.Join(p.Own.Close(ctx), p.Replica.Close(ctx))
}

// roles returns the primary and its replica.
func (p *Pair) roles() (primary, replica *Own) {
	if primary = p.Primary(); primary == p.Own {
		return primary, p.Replica
	}
	return primary, p.Own
}

// until reads INFO replication from the primary and the replica until shows returns true for their replies. It returns
// an error after a minute, or if it cannot read a reply. The error message describes the condition with the parameter
// does.
func (p *Pair) until(ctx context.Context, does string, shows func(primary, replica replies.Info) bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	primary, replica := p.roles()
	for ; ; time.Sleep(time.Millisecond) {
		one, err := primary.replication(ctx)
		other, wrong := replica.replication(ctx)
		if err := errors.Join(err, wrong); err != nil {
			return fmt.Errorf("wait until %s %s: %w", replica.Addr(), does, err)
		}
		if shows(one, other) {
			return nil
		}
	}
}

func (o *Own) sendCommand(ctx context.Context, command ...any) error {
	err := Control(o.Addr(), o.Password, func(client *redis.Client) error { return client.Do(ctx, command...).Err() })
	if err != nil {
		return fmt.Errorf("%v to %s: %w", command[0], o.Addr(), err)
	}
	return nil
}

// replication returns the fields of INFO replication.
func (o *Own) replication(ctx context.Context) (about replies.Info, err error) {
	err = Control(o.Addr(), o.Password, func(client *redis.Client) error {
		text, err := client.Info(ctx, "replication").Result()
		about = replies.ParseInfo(text)
		return err
	})
	return about, err
}
