package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// Server is the ZooKeeper of a session, a store.Server.
type Server struct {
	layout
	runID    string
	node     gozk.Node        // its connections are not counted
	own      []launch.Started // none for a user's server
	pin      *launch.Pinning
	about    results.Redis
	counters []*restartCounters // by server
	meter    store.Meter
	watching *link
	sockets
}

// label is the prefix of all connections' names in the session.
func (s *Server) label() string { return "lockbench:" + s.runID + ":" }

// Describe says what the server is, without any secret.
func (s *Server) Describe() results.Redis { return s.about }

// RunIDs identify the processes that lockbench started; they are "" for a user's servers.
func (s *Server) RunIDs() []string {
	ids := make([]string, len(s.node.Servers))
	for i, o := range s.own {
		ids[i] = fmt.Sprintf("%s/%d", o.Addr(), o.PID())
	}
	return ids
}

// GeneratorCPUs returns the CPUs to which the generator is pinned; nil without pinning.
func (s *Server) GeneratorCPUs() []int { return s.pin.GeneratorCPUs() }

// Local says whether all servers are on this machine.
func (s *Server) Local() bool {
	return !slices.ContainsFunc(s.node.Servers, store.Remote)
}

// Ping says whether enough servers serve for locks.
func (s *Server) Ping(ctx context.Context) error {
	_, err := s.looks(ctx)
	return err
}

// looks asks all servers and returns how many serve; the error says that these are too few.
func (s *Server) looks(ctx context.Context) (serving int, err error) {
	problems := make([]error, len(s.node.Servers))
	var all sync.WaitGroup
	for i, addr := range s.node.Servers {
		all.Go(func() {
			if _, err := look(ctx, s.observe, addr); err != nil {
				problems[i] = fmt.Errorf("%s: %w", addr, err)
			}
		})
	}
	all.Wait()
	for _, problem := range problems {
		if problem == nil {
			serving++
		}
	}
	if !s.enough(serving) {
		return serving, fmt.Errorf("%w: %w", ErrUnreachable, errors.Join(problems...))
	}
	return serving, nil
}

// enough says whether this many servers are enough for locks. Of a user's ensemble some members may not
// be known: a member that serves is in contact with a majority.
func (s *Server) enough(serving int) bool {
	if len(s.own) > 0 {
		return serving > len(s.own)/2
	}
	return serving > 0
}

// settling is how long servers may take to settle.
const settling = 30 * time.Second

// Settle waits until all servers that lockbench started serve, or enough of a user's.
func (s *Server) Settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	for {
		serving, err := s.looks(ctx)
		if err == nil && serving >= len(s.own) {
			if _, err = s.watching.live(ctx); err == nil {
				return nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w: wait for %s: %d serve: %w", ErrUnreachable, s.about.Topology, serving, errors.Join(err, ctx.Err()))
		}
	}
}

// Limits reads the servers' limits; those of an ensemble are the lowest.
func (s *Server) Limits(ctx context.Context) (store.Limits, error) {
	var tightest store.Limits
	told := false
	for _, addr := range s.node.Servers {
		answer, err := ask(ctx, s.observe, addr, "mntr")
		if err != nil {
			continue
		}
		told = true
		counted := fields(answer)
		limits := store.Limits{MaxClients: counted["zk_max_file_descriptor_count"], Connected: counted["zk_num_alive_connections"]}
		if limits.MaxClients > 0 { // the server's own files count too
			limits.MaxClients -= max(0, counted["zk_open_file_descriptor_count"]-limits.Connected)
		}
		if answer, err = ask(ctx, s.observe, addr, "conf"); err == nil { // limit of connections from one address, here ours
			if most := fields(answer)["maxClientCnxns"]; most > 0 && (limits.MaxClients == 0 || most < limits.MaxClients) {
				limits.MaxClients = most
			}
		}
		if tightest.MaxClients == 0 || limits.MaxClients > 0 && limits.MaxClients < tightest.MaxClients {
			tightest = limits
		}
	}
	if !told {
		return store.Limits{}, fmt.Errorf("%w: read the limits of %s", ErrUnreachable, strings.Join(s.node.Servers, ","))
	}
	return tightest, nil
}

// Close disconnects, and removes the servers that Open started.
func (s *Server) Close(ctx context.Context) error {
	problems := []error{s.pin.Unpin()}
	if s.watching != nil {
		s.watching.close(ctx)
	}
	return errors.Join(append(problems, launch.Each(ctx, s.own, launch.Started.Close))...)
}
