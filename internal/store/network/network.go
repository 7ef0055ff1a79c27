// Package network injects faults between application instances and the servers of any store:
// latency, low bandwidth, resets, partitions.
package network

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// Network is a set of proxies on the loopback interface, one for each application instance and
// address, with faults on them. nil means direct connections.
type Network struct {
	life     context.Context // ends with Close
	end      context.CancelFunc
	going    sync.WaitGroup
	sleepers pause.Sleepers

	mu      sync.Mutex
	proxies map[route]net.Listener
	links   map[*link]struct{}
	active  []*workloads.Fault
	changed chan struct{} // closed when another fault begins or ends
}

// route identifies the proxy of an instance and an address.
type route struct {
	instance int
	addr     string
}

// on says whether a fault hits a route: it hits the first instances, or all.
func (r route) on(f *workloads.Fault) bool { return f.Instances == 0 || r.instance < f.Instances }

// New prepares for the network faults of a workload; it returns nil if there are none. The
// caller closes it.
func New(all []workloads.Fault) *Network {
	if !slices.ContainsFunc(all, func(f workloads.Fault) bool { return f.Kind().Place == workloads.OnNetwork }) {
		return nil
	}
	n := &Network{
		proxies: map[route]net.Listener{}, links: map[*link]struct{}{}, changed: make(chan struct{}),
	}
	n.life, n.end = context.WithCancel(context.Background())
	return n
}

// Detour leads an instance's connections through its proxies; nil means direct connections.
func (n *Network) Detour(instance int) store.Through {
	if n == nil {
		return nil
	}
	return func(dial store.Dialer) store.Dialer {
		return func(ctx context.Context, kind, addr string) (net.Conn, error) {
			if kind != "tcp" {
				return nil, fmt.Errorf("--fault: there is no network to disturb between here and %s %s", kind, addr)
			}
			proxy, err := n.proxy(route{instance, addr})
			if err != nil {
				return nil, err
			}
			return dial(ctx, kind, proxy)
		}
	}
}

// proxy returns the address of a route's proxy; the first call starts it.
func (n *Network) proxy(r route) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life.Err() != nil {
		return "", net.ErrClosed
	}
	proxy := n.proxies[r]
	if proxy == nil {
		var err error
		if proxy, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return "", fmt.Errorf("start a proxy before %s: %w", r.addr, err)
		}
		n.proxies[r] = proxy
		n.going.Go(func() { n.serve(r, proxy) })
	}
	return proxy.Addr().String(), nil
}

// Prepare returns the Action of a network fault, see store.Faults.
func (n *Network) Prepare(f workloads.Fault) (store.Action, error) {
	outage := store.NoOutage
	switch f.Name {
	case workloads.Latency, workloads.Bandwidth:
	case workloads.HalfOpen:
		return n.halfOpen(&f), nil
	case workloads.Reset, workloads.Partition:
		if f.Instances == 0 {
			outage = store.Throughout
		}
	default:
		return store.Action{}, fmt.Errorf("there is no fault %s of the network", f.Name)
	}
	return store.Action{
		Outage: outage,
		Hit: func(context.Context) error {
			n.change(func() {
				n.active = append(n.active, &f)
				if f.Name == workloads.Reset {
					n.each(&f, (*link).reset)
				}
			})
			return nil
		},
		End: func(context.Context) error {
			n.change(func() {
				n.active = slices.DeleteFunc(n.active, func(other *workloads.Fault) bool { return other == &f })
			})
			return nil
		},
	}, nil
}

// halfOpen makes all existing connections silent on both sides, as after a device on the way
// lost their state. At the end it closes them. New connections work.
func (n *Network) halfOpen(f *workloads.Fault) store.Action {
	var silenced []*link
	return store.Action{
		Hit: func(context.Context) error {
			n.change(func() {
				n.each(f, func(l *link) { l.silent, silenced = true, append(silenced, l) })
			})
			return nil
		},
		End: func(context.Context) error {
			for _, l := range silenced {
				l.close()
			}
			return nil
		},
	}
}

// change changes the faults, and makes all links look at them again.
func (n *Network) change(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
	close(n.changed)
	n.changed = make(chan struct{})
}

// each calls do for every link that a fault hits. The caller holds mu.
func (n *Network) each(f *workloads.Fault, do func(*link)) {
	for l := range n.links {
		if l.on(f) {
			do(l)
		}
	}
}

// Close closes the proxies and their connections.
func (n *Network) Close() {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.end()
	for _, proxy := range n.proxies {
		_ = proxy.Close()
	}
	for l := range n.links {
		l.hangUp()
	}
	n.mu.Unlock()
	n.going.Wait()
	n.sleepers.Close()
}

// delayed returns when the faults let a piece go on, and whether one holds it until the next change.
func (n *Network) delayed(l *link, p piece) (due time.Time, held bool, changed <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	due, held = p.at, l.silent
	sending := 0.0 // ns; a float does not overflow
	for _, f := range n.active {
		switch {
		case !l.on(f):
		case f.Name == workloads.Latency:
			due = due.Add(time.Duration(float64(f.Delay) + float64(f.Jitter)*p.luck))
		case f.Name == workloads.Bandwidth:
			sending += float64(len(p.data)) / float64(f.Rate) * 1e6
		case f.Name == workloads.Partition: // data are delayed, not lost, as with TCP's retransmissions
			held = true
		}
	}
	if sending > 0 && due.Before(p.after) { // after the distance: pieces wait for each other's sending alone
		due = p.after
	}
	return due.Add(time.Duration(sending)), held, n.changed
}
