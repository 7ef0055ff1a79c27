package ensemble

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Store is a store that runs as one server or as one ensemble. It implements store.Store.
type Store struct {
	Name, Official string // the name that it is registered under, and its title
	URLs           []string
	Rights         []string // the rights that a user of the server needs, see store.Needer
	Most           int      // the largest ensemble that lockbench starts, an odd number; 1 means only a single server
	ToAll          bool     // an instance connects to every member instead of one
	// Refuses returns the reason why the store does not support a fault, as text that follows the fault's name. It returns
	// nil if the store supports the fault. A nil Refuses permits all faults.
	Refuses func(workloads.Fault) error
	// Address checks the address and the --ca-file of a user's server, and returns all errors in them.
	Address func(store.Options) error
	New     func(Servers) Server
}

// Server is a store.Server that Store.Open creates and begins.
type Server interface {
	store.Server
	// Begin finds or starts the servers, connects to them, and describes them.
	Begin(ctx context.Context, o store.Options) error
}

// Title returns the official name of the store.
func (k Store) Title() string { return k.Official }

// Schemes returns the URL schemes of the store's addresses.
func (k Store) Schemes() []string { return k.URLs }

// Needs implements store.Needer. It returns the rights that a user of the store needs.
func (k Store) Needs(string) []string { return k.Rights }

// Open finds or starts the servers. On a user's servers, it does not search for locks of killed runs, because the
// servers remove the locks of a killed run when its sessions or connections end.
func (k Store) Open(ctx context.Context, runID string, o store.Options) (store.Server, error) {
	if err := k.Validate(o); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrConfig, err)
	}
	asked := k.layout(o)
	s := k.New(Servers{Layout: asked, RunID: runID, Meter: new(store.Meter)})
	err := s.Begin(ctx, o)
	if err == nil {
		there := s.Describe().Topology
		if asked.Members > 0 && asked.Topology() != there {
			err = fmt.Errorf("%w: --topology %s was requested, but the topology of the servers is %s", store.ErrConfig,
				o.Topology, there)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// Validate implements store.Store. It returns every error in the options.
func (k Store) Validate(o store.Options) error {
	_, topology := k.Members(o.Topology)
	problems := []error{topology}
	if !o.Started() {
		problems = append(problems, k.Address(o))
	}
	wrong := func(isWrong bool, format string, args ...any) {
		if isWrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	_, unknown := store.ParseDurability(string(o.Durability))
	wrong(unknown != nil, "--durability: %w", unknown)
	wrong(o.Address == "container" || o.Image != "",
		"lockbench starts %s only as a process, not in a container", k.Official)
	wrong(o.CAFile != "" && o.Started(), "--ca-file applies only to a server that lockbench does not start itself")
	wrong(!o.Started() && o.Durability != "", "--durability applies only to a server that lockbench starts itself")
	return errors.Join(problems...)
}

// Members parses a topology and returns its number of members. It returns 0 for "", which means not specified.
func (k Store) Members(topology string) (int, error) {
	switch topology {
	case "":
		return 0, nil
	case "single", k.Name:
		return 1, nil
	}
	forms := "single"
	for n := 1; n <= k.Most && k.Most > 1; n += 2 {
		form := fmt.Sprintf("%s:%d", k.Name, n)
		if form == topology {
			return n, nil
		}
		forms += " or " + form
	}
	return 0, fmt.Errorf("--topology %s: the topology of %s must be %s", topology, k.Official, forms)
}

// Layout returns the number of members that the options ask for. It is 0 for a user's ensemble of unknown size.
func (k Store) Layout(o store.Options) store.Layout { return k.layout(o) }

func (k Store) layout(o store.Options) Layout {
	n, _ := k.Members(o.Topology) // Validate reports the error
	if n == 0 && (o.Started() || k.Most == 1) {
		n = 1
	}
	return Layout{k, n, o.Started()}
}

// Layout holds the number of members of a store, and whether lockbench starts them. It implements store.Layout.
type Layout struct {
	Store   Store
	Members int  // 0 if not known
	Started bool // by lockbench
}

// Topology returns the topology in the form that Store.Members parses.
func (l Layout) Topology() string {
	if l.Members <= 1 {
		return "single"
	}
	return l.Store.Name + ":" + strconv.Itoa(l.Members)
}

// Unfit returns the reason why a strategy cannot run on the store; "" if it can.
func (l Layout) Unfit(info strategies.Info) string {
	switch {
	case info.Nodes > 0 && info.Store != l.Store.Name:
		return "it does not lock in " + l.Store.Official
	case info.Nodes > 1:
		return fmt.Sprintf("it needs %d independent nodes, but the members of %s form a single store", info.Nodes,
			l.Store.Official)
	}
	return ""
}

// Primaries returns the number of servers that every instance connects to.
func (l Layout) Primaries() int {
	if l.Store.ToAll {
		return max(l.Members, 1)
	}
	return 1
}

// Impossible returns an error for every fault that is not possible.
func (l Layout) Impossible(all []workloads.Fault) []error {
	var wrong []error
	for _, f := range all {
		if err := l.impossible(f); err != nil {
			wrong = append(wrong, fmt.Errorf("--fault %s %w", f.Name, err))
		}
	}
	return wrong
}

// impossible returns the reason why a fault is not possible, as text that follows the fault's name. It returns nil if
// the fault is possible.
func (l Layout) impossible(f workloads.Fault) error {
	if l.Store.Refuses != nil {
		if err := l.Store.Refuses(f); err != nil {
			return err
		}
	}
	switch f.Name {
	case workloads.Kill, workloads.Pause, workloads.NodeDown, workloads.NodeHang:
	default:
		if f.Kind().Place == workloads.OnServers || f.Name == workloads.CrashBetween {
			return fmt.Errorf("is a fault of Redis, not of %s", l.Store.Official)
		}
		return nil
	}
	switch last := f.Node + max(f.N, 1) - 1; {
	case !l.Started:
		return fmt.Errorf("needs %s servers that lockbench starts itself", l.Store.Official)
	case f.Kind().Topology != "" && l.Members == 1:
		return fmt.Errorf("needs several members: use --topology %s:3", strings.ToLower(l.Store.Official))
	case last >= l.Members:
		return fmt.Errorf("hits member %d, but the last member is %d", last, l.Members-1)
	case f.Name == workloads.Kill && f.Data == workloads.DataLose && l.Members > 1:
		return errors.New("cannot restart a member without its data, because the other members need that data: use data=keep")
	}
	return nil
}
