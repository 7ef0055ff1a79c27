package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

type netConn = net.Conn

var plain = net.Dialer{KeepAlive: 5 * time.Minute}

// Server is the etcd of a run. It is safe for concurrent use.
type Server struct {
	layout
	runID       string
	to          address
	members     []*member
	description results.Redis

	client  *clientv3.Client // for all members, to observe
	meter   store.Meter
	present *presence // nil if lockbench started etcd
	http    *http.Client
}

// member is one server of the etcd.
type member struct {
	endpoint string
	own      launch.Started   // nil for a user's server
	client   *clientv3.Client // for this member alone, to observe
	id       uint64
	counters store.RestartCounters
}

func newServer(runID string) *Server { return &Server{runID: runID} }

// reach adds a user's members.
func (s *Server) reach(to address) {
	s.to = to
	for _, endpoint := range to.endpoints {
		s.members = append(s.members, &member{endpoint: endpoint})
	}
}

// openTimeout bounds the first contact with a user's etcd.
const openTimeout = 3500 * time.Millisecond

// connect opens the observing clients and identifies the servers.
func (s *Server) connect(ctx context.Context) error {
	s.to.endpoints = nil
	for _, m := range s.members {
		s.to.endpoints = append(s.to.endpoints, m.endpoint)
	}
	s.http = &http.Client{Transport: &http.Transport{TLSClientConfig: s.to.tls.Clone()}}
	first, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	err := s.knock(first)
	if err != nil {
		return s.because(ctx, err)
	}
	if s.client, err = s.observer(s.to); err != nil {
		return s.because(ctx, err)
	}
	if err := ask(first, s.client); err != nil {
		return s.because(ctx, err)
	}
	for _, m := range s.members {
		alone := s.to
		alone.endpoints = []string{m.endpoint}
		if m.client, err = s.observer(alone); err != nil {
			return s.because(ctx, err)
		}
		status, err := m.client.Status(first, m.endpoint)
		if err != nil {
			return s.because(ctx, err)
		}
		m.id = status.Header.MemberId
		s.description.Version = untrusted.Printable(status.Version)
	}
	s.description.Address = s.members[0].endpoint
	if len(s.members) > 1 {
		s.description.Topology = fmt.Sprintf("etcd:%d", len(s.members))
		s.description.Nodes = s.to.endpoints
	}
	if s.members[0].own != nil {
		return nil
	}
	if s.present, err = announce(first, s.client, observerName(s.runID)); err != nil {
		return s.because(ctx, err)
	}
	return ctx.Err()
}

// observerName is the name of our own connections.
func observerName(runID string) string { return "lockbench:" + runID + ":observer" }

// observer makes a client whose commands and bytes count as our own observation.
func (s *Server) observer(to address) (*clientv3.Client, error) {
	config := clientConfig(to)
	config.DialTimeout = openTimeout // limits the login, which needs most members
	counting := observed{&s.meter}
	return dial(observing(config,
		grpc.WithChainUnaryInterceptor(counting.unary), grpc.WithChainStreamInterceptor(counting.stream)), &s.meter.Observed)
}

// Describe says which etcd it is and why, without any secret.
func (s *Server) Describe() results.Redis { return s.description }

// RunIDs are the members' ids with the time of their start, if known.
func (s *Server) RunIDs() []string {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	_, _ = s.Read(ctx) // without an answer the last known values are used
	var ids []string
	for _, m := range s.members {
		ids = append(ids, fmt.Sprintf("%x@%s", m.id, m.counters.Process()))
	}
	return ids
}

// Ping says whether etcd answers with the agreement of most members.
func (s *Server) Ping(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan error, len(s.members))
	var all sync.WaitGroup
	defer all.Wait()
	for _, m := range s.members {
		all.Go(func() { answers <- ask(ctx, m.client) })
	}
	var problems []error
	for range s.members {
		err := <-answers
		if err == nil {
			cancel()
			return nil
		}
		problems = append(problems, err)
	}
	return fmt.Errorf("%w: etcd at %s: %w", store.ErrUnreachable, s.description.Address, errors.Join(problems...))
}

// Local says whether etcd runs on this machine.
func (s *Server) Local() bool { return s.description.Network != "remote" }

// Settle waits until all members that lockbench started answer.
func (s *Server) Settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, launch.StartTimeout)
	defer cancel()
	if !s.started {
		return s.Ping(ctx)
	}
	for _, m := range s.members {
		for {
			attempt, cancel := context.WithTimeout(ctx, time.Second)
			err := ask(attempt, m.client)
			cancel()
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("%w: member %s does not come back: %w", store.ErrUnreachable, m.endpoint, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}

// Limits returns zeros: etcd does not report any.
func (s *Server) Limits(context.Context) (store.Limits, error) { return store.Limits{}, nil }

// GeneratorCPUs returns nil: pinning is not supported.
func (s *Server) GeneratorCPUs() []int { return nil }

// Subscriptions returns nil: watches are part of waiting, and end with it.
func (s *Server) Subscriptions(context.Context) *int64 { return nil }

// Commands returns nil: headers to etcd are compressed, so commands cannot be read from them.
func (s *Server) Commands([]byte) []string { return nil }

// Faults returns an Injector for the faults of a workload.
func (s *Server) Faults(all []workloads.Fault) store.Injector { return newInjector(s, all) }

// Close disconnects, and removes the members that Open started.
func (s *Server) Close(ctx context.Context) error {
	var problems []error
	if s.present != nil {
		s.present.end()
	}
	var own []launch.Started
	for _, m := range s.members {
		if m.client != nil {
			problems = append(problems, closed(m.client))
		}
		if m.own != nil {
			own = append(own, m.own)
		}
	}
	if s.client != nil {
		problems = append(problems, closed(s.client))
	}
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
	return errors.Join(append(problems, launch.Each(ctx, own, launch.Started.Close))...)
}

// closed closes a client. The client returns its own cancelled context, which is no error.
func closed(client *clientv3.Client) error {
	if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
