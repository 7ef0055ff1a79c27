package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// node is one Redis server of a run, with the client that observes it.
type node struct {
	own      *Own                   // nil for a user's server
	watchers *sentinels             // the Sentinels that know its address; nil if there are none
	options  redis.UniversalOptions // address and user
	files    goredis.Files          // of its certificates
	observer redis.UniversalClient  // reads the node's counters, under a separate CLIENT name
	software software
	runID    string      // of the Redis process; a restart changes it
	role     string      // when it was opened; "" if not known
	replID   string      // ID of the replication history, which replicas share with their primary
	detached atomic.Bool // lockbench detached it from its primary
	kept     store.RestartCounters
}

// These are the roles of a node.
const (
	primary = "primary"
	replica = "replica"
)

// addr returns host:port or the path of a socket.
func (n *node) addr() string { return n.options.Addrs[0] }

// contactTimeout limits the first contact, so that an unreachable server is reported within 5 s.
const contactTimeout = 4 * time.Second

// open creates the observer and identifies the server. If the user lacks the right to name a connection, the observer's
// connections have no name.
func (n *node) open(ctx context.Context, meter *store.Meter, runID string, slots chan struct{}) error {
	// When the number of failed dials reaches the size of the pool, go-redis dials the server only once a second. The
	// observer needs few connections; its pool is larger only to raise this limit.
	const connections = 64
	options := n.clientOptions(&meter.Observed, observerName(runID), connections, slots)
	options.Dialer = n.watchers.through(options.Dialer)
	connect := func() error {
		n.observer = redis.NewUniversalClient(options)
		n.observer.AddHook(observed{meter})
		return n.observer.Ping(ctx).Err()
	}
	ctx, cancel := context.WithTimeout(ctx, contactTimeout)
	defer cancel()
	err := connect()
	if lacks(err) { // connect without a name and a database, so that Needs can find all missing rights
		_ = n.observer.Close()
		options.ClientName, options.DB = "", 0
		if err = connect(); lacks(err) { // it may lack PING too
			err = nil
		}
	}
	if err == nil {
		err = n.identify(ctx)
	}
	if err != nil {
		switch {
		case hungUp(err):
			err = fmt.Errorf("%w: %w", errHungUp, err)
		case refused(err) && errors.Is(sentinel(err), ErrConfig) && NextStep(err.Error()) == "":
			err = fmt.Errorf("%w: %w", errGreeting, err)
		}
		return fmt.Errorf("%w: connect to %s: %w", sentinel(err), n.addr(), err)
	}
	if n.software.Mode == "sentinel" {
		return fmt.Errorf("%w: %s is a Sentinel: give redis+sentinel://%[2]s/PRIMARY, or the addresses of the primary "+
			"and its replicas", ErrConfig, n.addr())
	}
	return nil
}

// identify reads the server's software, run ID and role with INFO, or with HELLO if the server refuses INFO.
func (n *node) identify(ctx context.Context) error {
	pipe := n.observer.Pipeline()
	asked := infos(ctx, pipe, "server", "replication")
	hello := pipe.Do(ctx, "HELLO")
	threads := pipe.ConfigGet(ctx, "io-threads")
	fields, err := sent(ctx, pipe, asked)
	if err != nil {
		return err
	}
	greeted := goredis.Greeting(hello.Val())
	for name, value := range greeted {
		greeted[name] = untrusted.Printable(value)
	}
	n.software.Software = goredis.SoftwareOf(fields, greeted)
	n.software.protocol, _ = strconv.Atoi(greeted["proto"])
	if count, err := strconv.Atoi(threads.Val()["io-threads"]); err == nil {
		n.software.ioThreads = &count
	}
	n.runID, n.replID = fields["run_id"], fields["master_replid"]
	n.role = cmp.Or(role(fields["role"]), role(greeted["role"]))
	return nil
}

// role converts Redis's name of a role, which is master or slave in INFO and master or replica in HELLO; "" means
// unknown.
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

func disconnect(nodes []*node) error {
	var problems []error
	for _, n := range nodes {
		if n.observer == nil {
			continue
		}
		if err := n.observer.Close(); err != nil {
			problems = append(problems, fmt.Errorf("disconnect from %s: %w", n.addr(), err))
		}
	}
	return errors.Join(problems...)
}

// observerName is the CLIENT name of a run's observer. The names of the run's clients begin with this name. The run is
// alive while any connection has such a name.
func observerName(runID string) string { return "lockbench:" + runID }

// useAddresses adds the user's nodes. recognise determines their topology later.
func (s *Server) useAddresses(ctx context.Context, options Options) error {
	addresses, watchers, err := options.addresses()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if watchers != nil {
		found, err := watchers.where(ctx)
		if errors.Is(err, errNotWatched) {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		addresses[0].Addrs[0] = found
	}
	for _, at := range addresses {
		s.nodes = append(s.nodes, &node{
			options: *at, watchers: watchers,
			files: goredis.Files{CA: options.CAFile, Cert: options.CertFile, Key: options.KeyFile},
		})
	}
	first := s.nodes[0]
	s.redis = results.Redis{
		Source: "address", Network: store.NetworkTo(first.addr()), TLS: first.options.TLSConfig != nil,
		Why: "its address was given",
	}
	return nil
}

// software is what a server reports about itself.
type software struct {
	goredis.Software
	protocol  int  // RESP version of lockbench's connections; 0 if not known
	ioThreads *int // nil if not known
}

// readInfo reads several sections of INFO in one pipeline. It omits sections that the server refuses.
func readInfo(ctx context.Context, client redis.UniversalClient, sections ...string) (replies.Info, error) {
	pipe := client.Pipeline()
	return sent(ctx, pipe, infos(ctx, pipe, sections...))
}
