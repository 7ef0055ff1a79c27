package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
	"github.com/lockbench/lockbench/internal/store/network"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/workloads"
)

const (
	dialTimeout = 5 * time.Second
	openTimeout = 3500 * time.Millisecond // limits the first contact with a user's etcd
	// The client sends a ping when it has received no data for `silence`. If no reply arrives within `unheard`, the client
	// closes the connection. gRPC permits no shorter silence.
	silence = 10 * time.Second
	unheard = 3 * time.Second
	// probeKey is a key that never exists. A read of it tests etcd and returns no data.
	probeKey = "lockbench:nobody"
)

// Server is the etcd of a run. It is safe for concurrent use.
type Server struct {
	ensemble.Servers
	to      address
	members []member // by endpoint

	client *clientv3.Client // of lockbench's own observation
	http   *http.Client
}

// member is one member of the etcd, with its counters over its restarts.
type member struct {
	id       uint64
	counters store.RestartCounters
}

// config returns the configuration of a client. traffic counts the bytes and requests on the client's connections, and
// each detour wraps the client's dialer. A nil argument has no effect. The client retries only requests that are safe
// to repeat.
func (a address) config(traffic *netfault.Traffic, detours ...store.Through) clientv3.Config {
	dial := (&net.Dialer{KeepAlive: 5 * time.Minute}).DialContext
	if traffic != nil {
		dial = traffic.Through(dial)
	}
	for _, detour := range detours {
		if detour != nil {
			dial = detour(dial)
		}
	}
	return clientv3.Config{
		Endpoints: a.endpoints, Username: a.user, Password: a.password, TLS: a.tls,
		DialTimeout: dialTimeout, DialKeepAliveTime: silence, DialKeepAliveTimeout: unheard,
		MaxUnaryRetries: 1, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dial(ctx, "tcp", addr)
		})},
	}
}

// readFromMajority sends a linearizable read, to which etcd replies only if a majority of its members agrees.
func readFromMajority(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := client.Get(ctx, probeKey, clientv3.WithKeysOnly())
	return err
}

// connect opens the observer's client and identifies the members. The client reconnects soon after a lost member
// returns.
func (s *Server) connect(ctx context.Context) error {
	s.http = &http.Client{Transport: &http.Transport{TLSClientConfig: s.to.tls.Clone()}}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	err := s.checkReachable(ctx)
	if err != nil {
		return err
	}
	quick := backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond}
	config := s.to.config(&s.Meter.Observed)
	config.DialTimeout = openTimeout // limits the login, which needs a majority
	config.DialOptions = append(config.DialOptions, grpc.WithChainUnaryInterceptor(s.observed),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: quick, MinConnectTimeout: dialTimeout}))
	if s.client, err = clientv3.New(config); err != nil {
		return err
	}
	if err = s.agree(ctx); err != nil {
		return err
	}
	for n, endpoint := range s.to.endpoints {
		status, err := s.client.Status(ctx, endpoint)
		if err != nil {
			return err
		}
		s.members[n].id = status.Header.MemberId
		s.About.Version = untrusted.Printable(status.Version)
	}
	s.Members = len(s.members)
	s.About.Name, s.About.Address, s.About.Topology = Name, s.to.endpoints[0], s.Topology()
	if s.Members > 1 {
		s.About.Nodes = s.to.endpoints
	}
	if s.Started {
		return nil
	}
	return s.scratch(ctx, func(put func() error) error { return put() }) // fails if the user may not write
}

// observed is a gRPC interceptor that counts the requests of lockbench's own observation.
func (s *Server) observed(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	s.Meter.Count(path.Base(method))
	return invoke(ctx, method, request, reply, conn, options...)
}

// RunIDs returns the IDs of the members, each with the start time of its process if known.
func (s *Server) RunIDs() (ids []string) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	_, _ = s.Read(ctx) // if it fails, the last known start times remain
	for n := range s.members {
		ids = append(ids, fmt.Sprintf("%x@%s", s.members[n].id, s.members[n].counters.Process()))
	}
	return ids
}

// agree returns nil if a majority of the members confirms a read. It sends up to two requests per member, each to a
// different member than the previous request, and stops at a refusal.
func (s *Server) agree(ctx context.Context) (err error) {
	for range 2 * len(s.members) {
		if err = readFromMajority(ctx, s.client); err == nil || ctx.Err() != nil || s.Refused(err) != "" {
			break
		}
	}
	return err
}

// Ping returns an error unless a majority of the members confirms a read.
func (s *Server) Ping(ctx context.Context) error {
	if err := s.agree(ctx); err != nil {
		return fmt.Errorf("%w: etcd at %s: %w", store.ErrUnreachable, s.to.endpoints[0], err)
	}
	return nil
}

// Settle waits until each member that lockbench started replies to a read.
func (s *Server) Settle(ctx context.Context) error { return s.Servers.Settle(ctx, s.Ping, ready) }

// Close disconnects, and removes the members that Open started.
func (s *Server) Close(ctx context.Context) error {
	var err error
	if s.client != nil {
		err = closed(s.client)
	}
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
	return errors.Join(err, s.Servers.Close(ctx))
}

// closed closes a client. It ignores the error context.Canceled, which clientv3 returns although Close has succeeded.
func closed(client *clientv3.Client) error {
	if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("close etcd's client: %w", err)
	}
	return nil
}

// Faults returns an Injector for the faults of a workload.
func (s *Server) Faults(all []workloads.Fault) store.Injector {
	return ensemble.Faults{Layout: s.Layout, Network: network.New(all), Own: s.Own, Leader: s.leader}
}

// leader asks the members that are not in away for the leader. It returns nil if there is no leader or the leader is in
// away.
func (s *Server) leader(ctx context.Context, away []launch.Started) launch.Started {
	for _, own := range s.Own {
		if slices.Contains(away, own) {
			continue
		}
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		status, err := s.client.Status(attempt, own.Addr())
		cancel()
		for n, other := range s.Own {
			if err == nil && s.members[n].id == status.Leader && !slices.Contains(away, other) {
				return other
			}
		}
	}
	return nil
}
