// Package network injects faults between application instances and the servers of any store: latency, low bandwidth,
// resets and partitions.
package network

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// Network is a set of proxies, one per application instance and server address, that inject faults. A nil Network means
// direct connections.
type Network struct {
	proxies netfault.Proxies

	mu     sync.Mutex
	routes map[route]*netfault.Proxy
	active []*workloads.Fault
}

// route identifies a proxy by its application instance and server address.
type route struct {
	instance int
	addr     string
}

// on reports whether a fault hits a route. A fault hits the first f.Instances instances; f.Instances = 0 means all.
func (r route) on(f *workloads.Fault) bool { return f.Instances == 0 || r.instance < f.Instances }

// New returns a Network for a workload's network faults, or nil if the workload has none. The caller must close it.
func New(all []workloads.Fault) *Network {
	if !slices.ContainsFunc(all, func(f workloads.Fault) bool { return f.Kind().Place == workloads.OnNetwork }) {
		return nil
	}
	return &Network{routes: map[route]*netfault.Proxy{}}
}

// Detour returns a wrapper that routes the connections of an application instance through the proxies of that instance.
// It returns nil if the instance connects directly.
func (n *Network) Detour(instance int) store.Through {
	if n == nil {
		return nil
	}
	return func(dial store.Dialer) store.Dialer {
		return func(ctx context.Context, kind, addr string) (net.Conn, error) {
			if kind != "tcp" {
				return nil, fmt.Errorf("--fault: lockbench cannot disturb the connection to %s %s, because it does not use TCP",
					kind, addr)
			}
			proxy, err := n.proxy(route{instance, addr})
			if err != nil {
				return nil, err
			}
			return dial(ctx, kind, proxy.Addr())
		}
	}
}

// proxy returns the proxy of a route. The first call for a route starts the proxy.
func (n *Network) proxy(r route) (*netfault.Proxy, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	proxy := n.routes[r]
	if proxy == nil {
		var err error
		proxy, err = n.proxies.Listen(func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", r.addr)
		})
		if err != nil {
			return nil, fmt.Errorf("start a proxy for %s: %w", r.addr, err)
		}
		proxy.Set(n.condition(r))
		n.routes[r] = proxy
	}
	return proxy, nil
}

// Prepare returns the Action that begins and ends a network fault. It returns an error for any other fault.
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
		return store.Action{}, fmt.Errorf("%s is not a network fault", f.Name)
	}
	return store.Action{
		Outage: outage,
		Hit: func(context.Context) error {
			n.change(func() { n.active = append(n.active, &f) })
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

// halfOpen makes all existing connections silent in both directions, as if a device between the two ends had lost their
// state. New connections work. The end of the fault closes the silent connections.
func (n *Network) halfOpen(f *workloads.Fault) store.Action {
	var ends []func()
	return store.Action{
		Hit: func(context.Context) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			for r, proxy := range n.routes {
				if r.on(f) {
					ends = append(ends, proxy.Silence())
				}
			}
			return nil
		},
		End: func(context.Context) error {
			for _, end := range ends {
				end()
			}
			return nil
		},
	}
}

// change calls do, which updates the list of active faults, and then updates the condition of every proxy.
func (n *Network) change(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
	for r, proxy := range n.routes {
		proxy.Set(n.condition(r))
	}
}

// condition returns the combined effect of the active faults on a route. The caller holds mu.
func (n *Network) condition(r route) (c netfault.Condition) {
	const perMillisecond = 1e6 // a Rate is in KB/s
	for _, f := range n.active {
		switch {
		case !r.on(f):
		case f.Name == workloads.Latency:
			c.Delay += time.Duration(f.Delay)
			c.Jitter += time.Duration(f.Jitter)
		case f.Name == workloads.Bandwidth:
			c.PerByte += perMillisecond / float64(f.Rate)
		case f.Name == workloads.Partition:
			c.Hold = true
		case f.Name == workloads.Reset:
			c.Reset = true
		}
	}
	return c
}

// Close closes the proxies and their connections. It does nothing for a nil Network.
func (n *Network) Close() {
	if n == nil {
		return
	}
	n.proxies.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.routes)
}
