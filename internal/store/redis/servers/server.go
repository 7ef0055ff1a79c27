// Package servers provides the Redis of a run: containers or processes that it starts, or the user's servers, whose
// settings it never changes.
package servers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// Server is the Redis of a run: one node or several, which form a Topology. It is safe for concurrent use.
type Server struct {
	topology Topology
	// nodes are all Redis servers, including the nodes of a cluster and replicas. Each has an observer. The first primary
	// comes first.
	nodes []*node
	// primary is the node to which clients send their commands in a replicated topology; nil in other topologies.
	primary atomic.Pointer[node]
	failing sync.RWMutex // write-locked during a failover, so that dials wait
	// cluster is a client for all keys of a cluster; nil in other topologies.
	cluster *redis.ClusterClient

	redis    results.Redis
	allowed  bool          // the user permitted faults on their servers
	password string        // of the servers that lockbench started
	dials    chan struct{} // limits concurrent dials

	meter store.Meter // of all nodes
}

// Open finds or starts the Redis that the options describe, connects, and waits until the topology is complete: all
// replicas are in sync, and all slots of a cluster are served. On a user's servers it warns of keys that killed runs
// left. The error wraps ErrUnreachable or ErrConfig.
func Open(ctx context.Context, options Options) (*Server, error) {
	asked, err := ParseTopology(options.Topology)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	s := &Server{dials: make(chan struct{}, dialsAtOnce), allowed: options.AllowFaults}
	if err := s.open(ctx, options, asked); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	if !s.Started() {
		var left store.Swept
		for _, n := range s.primaries() {
			n.keys().Look(ctx, &left)
		}
		left.Tell(s.nodes[0].addr(), options.Warn, options.Logf)
	}
	s.describe()
	s.redis.Durability = s.nodes[0].durability(ctx)
	s.redis.AllowedCPUs = s.serverCPUs(ctx)
	return s, nil
}

func (s *Server) open(ctx context.Context, options Options, asked Topology) error {
	if err := s.start(ctx, options, asked.usual()); err != nil {
		return err
	}
	for _, node := range s.nodes {
		if err := node.open(ctx, &s.meter, options.RunID, s.dials); err != nil {
			return err
		}
	}
	if s.Started() {
		if err := s.topology.kind().arrange(ctx, s); err != nil {
			return fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
	} else if err := s.recognise(ctx, options.RunID, asked); err != nil {
		return err
	}
	if s.topology.Kind == Clustered {
		how := s.clusterOptions(&s.meter.Observed, observerName(options.RunID), 1)
		s.cluster = redis.NewClusterClient(how.Cluster())
		s.cluster.AddHook(observed{&s.meter})
	}
	return s.Settle(ctx)
}

// primaries returns the nodes to which clients send commands on keys.
func (s *Server) primaries() []*node {
	if primary := s.primary.Load(); primary != nil {
		return []*node{primary}
	}
	return slices.DeleteFunc(slices.Clone(s.nodes), func(n *node) bool { return n.role == replica })
}

// describe completes the description of the servers for the report.
func (s *Server) describe() {
	first := s.nodes[0]
	s.redis.Address = untrusted.Printable(first.addr()) // the text may come from a Sentinel
	s.redis.Name, s.redis.Version, s.redis.Mode = first.software.Name, first.software.Version, first.software.Mode
	s.redis.Protocol, s.redis.IOThreads = first.software.protocol, first.software.ioThreads
	s.redis.Topology = s.topology.String()
	if len(s.nodes) > 1 {
		for _, node := range s.nodes {
			s.redis.Nodes = append(s.redis.Nodes, untrusted.Printable(node.addr())) // the text may come from a cluster
		}
	}
}

// Address returns the URLs of the servers that Open started, separated by commas. The URLs contain the password, so
// that other processes can connect. Never print them.
func (s *Server) Address() string {
	urls := make([]string, len(s.nodes))
	for i, n := range s.nodes {
		at := url.URL{Scheme: "redis", User: url.UserPassword("", s.password), Host: n.addr()}
		urls[i] = at.String()
	}
	return strings.Join(urls, ",")
}

// Describe returns what the servers are and why they were chosen. The description contains no secrets.
func (s *Server) Describe() results.Redis { return s.redis }

// Unfit returns the reason why a strategy cannot run on these servers; "" if it can.
func (s *Server) Unfit(info strategies.Info) string {
	if old := s.nodes[0].software.TooOld(info.Since); old != "" {
		return "it " + old
	}
	for _, n := range s.nodes {
		if why := unreached(info, n.options); why != "" {
			return why
		}
	}
	return s.topology.Unfit(info)
}

// Primaries returns the number of nodes that every instance connects to.
func (s *Server) Primaries() int { return len(s.primaries()) }

// Owned returns the nodes that lockbench started and may kill and pause, the first primary first. It returns none for a
// user's servers.
func (s *Server) Owned() []*Own {
	var own []*Own
	for _, node := range s.nodes {
		if node.own != nil {
			own = append(own, node.own)
		}
	}
	return own
}

// Close disconnects, and removes the servers that Open started. It works even if ctx is already done.
func (s *Server) Close(ctx context.Context) error {
	problems := []error{disconnect(s.nodes)}
	if s.cluster != nil {
		problems = append(problems, s.cluster.Close())
	}
	return errors.Join(append(problems, launch.Each(ctx, s.Owned(), (*Own).Close))...)
}

// Started reports whether lockbench started the servers itself.
func (s *Server) Started() bool { return len(s.nodes) > 0 && s.nodes[0].own != nil }

// Observer returns the client with which lockbench observes the first primary, or the whole cluster.
func (s *Server) Observer() redis.UniversalClient {
	if s.cluster != nil {
		return s.cluster
	}
	return s.primaries()[0].observer
}

// spares reports whether clients can still get locks without the nodes in away.
func (s *Server) spares(away ...*node) bool { return s.topology.kind().spares(s, away) }

const (
	// patience limits the wait for a node that may be down.
	patience = time.Second
	// settleTimeout limits the wait for replicas to be in sync and for a cluster to be complete.
	settleTimeout = time.Minute
)

// Settle waits until every replica that is not detached has all data of the primary, and until a cluster serves all its
// slots.
func (s *Server) Settle(ctx context.Context) error {
	if err := s.nudge(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		err := s.topology.kind().settled(ctx, s)
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: wait for %s: %w", ErrUnreachable, s.topology, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Quiet turns go-redis's own logger off, because important messages are also returned as errors. It changes a setting
// of the whole process, so only commands and tests may call it, and only before the first connection is opened.
var Quiet = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
