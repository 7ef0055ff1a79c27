package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/internal/intercept"
	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/measure"
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
	observed traffic            // by our own observation
	watching *link
	swept    store.Swept // on a user's server, before the run
	sockets

	mu      sync.Mutex
	traffic []*traffic // one for each instance, including closed ones
}

// reach limits the time to reach a server.
const reach = 5 * time.Second

func (s *Server) open(ctx context.Context, o store.Options) error {
	s.allowed = o.AllowFaults
	asked, _ := parseTopology(o.Topology) // Validate has checked it
	if o.Started() {
		if err := s.start(ctx, o, max(asked, 1)); err != nil {
			return err
		}
	} else {
		launch.Sweep(ctx).Log(o.Logf)
		s.node, _ = parseAddress(o.Address) // Validate has checked it
	}
	if err := s.recognise(ctx, asked); err != nil {
		return err
	}
	for range s.node.Servers {
		s.counters = append(s.counters, new(restartCounters))
	}
	if err := s.watch(ctx); err != nil {
		return err
	}
	if len(s.own) == 0 {
		budget, cancel := context.WithTimeout(ctx, sweepLimit)
		defer cancel()
		_ = s.sweep(budget) // the next run tries again
	}
	return s.pin.PinGenerator()
}

// start starts servers.
func (s *Server) start(ctx context.Context, o store.Options, members int) error {
	var err error
	if o.Pin {
		if s.pin, err = launch.NewPinning(); err != nil {
			return err
		}
	}
	m := member{durability: o.Durability, cpus: s.pin.ServerCPUs()}
	way, err := launch.Ways{
		Asked: o.Address, Image: image(o), Logf: o.Logf, ProcessFirst: true, // an image with Java is large
		InContainers: func(ctx context.Context, engine launch.Engine, image string) (string, error) {
			network := ""
			if members > 1 { // the members use this machine's loopback interface
				network = "host"
			}
			var err error
			s.own, err = start(ctx, members, m, func(ctx context.Context, m member, pick launch.Picker) (launch.Started, error) {
				return m.contain(ctx, engine, image, network, pick, s.runID, o)
			})
			if err != nil {
				return "", err
			}
			return s.own[0].Network(), nil
		},
		AsProcesses: func(ctx context.Context) error {
			found, err := lookUp()
			if err != nil {
				return err
			}
			m.software = found
			s.own, err = start(ctx, members, m, func(ctx context.Context, m member, pick launch.Picker) (launch.Started, error) {
				p, err := launch.Start(ctx, m.program(), pick, s.runID)
				if err != nil {
					return nil, err
				}
				return p, nil
			})
			return err
		},
	}.Start(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	for _, o := range s.own {
		s.node.Servers = append(s.node.Servers, o.Addr())
	}
	s.about = results.Redis{Source: way.Source, Image: way.Image, Network: way.Network, Why: way.Why, Durability: string(store.Synced), PinnedCPUs: s.pin.ServerCPUs()}
	if o.Durability == store.InMemory {
		s.about.Durability = string(store.InMemory)
	}
	s.about.Why += "; it ticks every 100 ms, in place of 2 s"
	s.started = true
	return nil
}

// recognise asks the servers what they are.
func (s *Server) recognise(ctx context.Context, asked int) error {
	type told struct {
		status
		err error
	}
	all := make([]told, len(s.node.Servers))
	var asking sync.WaitGroup
	for i, addr := range s.node.Servers {
		asking.Go(func() { all[i].status, all[i].err = look(ctx, s.observed.dial, addr) })
	}
	asking.Wait()
	var first *told
	var problems []error
	for i, one := range all {
		if one.err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", s.node.Servers[i], one.err))
			continue
		}
		if first == nil {
			first = &all[i]
		}
		if one.mode == "standalone" && len(all) > 1 {
			return fmt.Errorf("%w: %s is a server alone, and no member of an ensemble with the others", store.ErrConfig, s.node.Servers[i])
		}
	}
	if first == nil {
		err := errors.Join(problems...)
		for _, addr := range s.node.Servers {
			if stranger := store.Stranger(ctx, addr, name); stranger != nil {
				return stranger
			}
		}
		if errors.Is(err, errStranger) {
			return fmt.Errorf("%w: %w", store.ErrConfig, err)
		}
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	s.node.Standalone = first.mode == "standalone"
	s.members = s.count(ctx)
	if asked > 0 && asked != s.members {
		return fmt.Errorf("%w: --topology %s was asked for, and there is %s", store.ErrConfig, topologyOf(asked), topologyOf(s.members))
	}
	s.about.Name, s.about.Version = name, first.version
	s.about.Mode = "ensemble"
	if s.node.Standalone {
		s.about.Mode = "standalone"
	}
	s.about.Topology, s.about.Address = topologyOf(s.members), s.node.Servers[0]
	if len(s.node.Servers) > 1 {
		s.about.Nodes = s.node.Servers
	}
	if len(s.own) == 0 {
		s.about.Source, s.about.Network, s.about.Why = "address", networkTo(s.node.Servers[0]), "an address was given"
	}
	s.about.AllowedCPUs = s.cpus()
	return nil
}

// count returns the number of members: a user's address may omit some.
func (s *Server) count(ctx context.Context) int {
	members := len(s.node.Servers)
	for _, addr := range s.node.Servers {
		if s.node.Standalone {
			break
		}
		answer, _ := ask(ctx, s.observed.dial, addr, "mntr")
		members = max(members, int(fields(answer)["zk_quorum_size"]))
	}
	return members
}

// cpus returns the CPUs on which the servers may run; nil if not known.
func (s *Server) cpus() []int {
	all := map[int]bool{}
	for _, o := range s.own {
		for _, cpu := range measure.Affinity(o.PID()) {
			all[cpu] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// watch opens the session that observes.
func (s *Server) watch(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	node := s.node
	node.Dial = s.observed.dial
	var err error
	s.watching, err = openLink(within, node, s.label()+"observer")
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return fmt.Errorf("%w: %w: create it, or give the address without it", store.ErrConfig, err)
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return fmt.Errorf("%w: %w: user or password is wrong, or this user may not do that: give it in the address or in %s", store.ErrConfig, err, authEnv)
	}
	if _, why := s.looks(ctx); why != nil { // the servers answered just before
		err = errors.Join(err, why)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
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
	return !slices.ContainsFunc(s.node.Servers, func(addr string) bool { return networkTo(addr) == "remote" })
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
			if _, err := look(ctx, s.observed.dial, addr); err != nil {
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
		answer, err := ask(ctx, s.observed.dial, addr, "mntr")
		if err != nil {
			continue
		}
		told = true
		counted := fields(answer)
		limits := store.Limits{MaxClients: counted["zk_max_file_descriptor_count"], Connected: counted["zk_num_alive_connections"]}
		if limits.MaxClients > 0 { // the server's own files count too
			limits.MaxClients -= max(0, counted["zk_open_file_descriptor_count"]-limits.Connected)
		}
		if answer, err = ask(ctx, s.observed.dial, addr, "conf"); err == nil { // limit of connections from one address, here ours
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
	stopped := make([]error, len(s.own))
	var all sync.WaitGroup
	for i, o := range s.own {
		all.Go(func() { stopped[i] = o.Close(ctx) })
	}
	all.Wait()
	return errors.Join(append(problems, stopped...)...)
}

// newTraffic returns the counter for one more instance.
func (s *Server) newTraffic() *traffic {
	t := new(traffic)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.traffic = append(s.traffic, t)
	return t
}

// traffic counts connections' traffic.
type traffic struct{ intercept.Traffic }
