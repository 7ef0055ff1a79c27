// Package network injects faults between application instances and the servers of any store:
// latency, low bandwidth, resets, partitions.
package network

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// Network is a set of proxies on the loopback interface, one for each application instance and
// address, with toxics on them. nil means direct connections.
type Network struct {
	maker *toxiproxy.ApiServer // makes proxies; its HTTP interface is not opened

	mu      sync.Mutex
	proxies map[route]*toxiproxy.Proxy
	retired []*toxiproxy.Proxy // proxies whose connections are silent
	toxics  []toxic            // active now
	made    int                // toxics made so far, for their names
}

// route identifies the proxy of an instance and an address.
type route struct {
	instance int
	addr     string
}

// toxic is a toxic on the routes of the first instances; 0 means all.
type toxic struct {
	name, kind string
	instances  int
	attributes map[string]any
}

func (t toxic) hits(r route) bool { return t.instances == 0 || r.instance < t.instances }

// New prepares for the network faults of a workload; it returns nil if there are none. The
// caller closes it.
func New(all []workloads.Fault) *Network {
	if !slices.ContainsFunc(all, func(f workloads.Fault) bool { return f.Kind().Place == workloads.OnNetwork }) {
		return nil
	}
	return &Network{
		maker:   toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()),
		proxies: map[route]*toxiproxy.Proxy{},
	}
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
			return dial(ctx, kind, proxy.Listen)
		}
	}
}

// proxy returns the proxy of a route; the first call makes it.
func (n *Network) proxy(r route) (*toxiproxy.Proxy, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if proxy := n.proxies[r]; proxy != nil {
		return proxy, nil
	}
	proxy := toxiproxy.NewProxy(n.maker, fmt.Sprintf("%d %s", r.instance, r.addr), "127.0.0.1:0", r.addr)
	for _, t := range n.toxics {
		if t.hits(r) {
			if err := put(proxy, t); err != nil {
				return nil, err
			}
		}
	}
	if err := proxy.Start(); err != nil {
		return nil, fmt.Errorf("start a proxy before %s: %w", r.addr, err)
	}
	n.proxies[r] = proxy
	return proxy, nil
}

// put puts a toxic on both directions of a proxy.
func put(proxy *toxiproxy.Proxy, t toxic) error {
	for _, stream := range []string{"upstream", "downstream"} {
		text, err := json.Marshal(map[string]any{
			"name": t.name + stream, "type": t.kind, "stream": stream,
			"attributes": t.attributes,
		})
		if err == nil {
			_, err = proxy.Toxics.AddToxicJson(bytes.NewReader(text))
		}
		if err != nil {
			return fmt.Errorf("put %s on a proxy: %w", t.kind, err)
		}
	}
	return nil
}

// action returns an Action that puts a toxic on the network and removes it at the end.
func (n *Network) action(kind string, instances int, attributes map[string]any, outage store.Outage) store.Action {
	n.mu.Lock()
	n.made++
	t := toxic{name: fmt.Sprintf("%s %d ", kind, n.made), kind: kind, instances: instances, attributes: attributes}
	n.mu.Unlock()
	if instances > 0 {
		outage = store.NoOutage
	}
	return store.Action{
		Outage: outage,
		Hit: func(context.Context) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.toxics = append(n.toxics, t)
			return n.onAll(t, func(proxy *toxiproxy.Proxy) error { return put(proxy, t) })
		},
		End: func(ctx context.Context) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			for i, other := range n.toxics {
				if other.name == t.name {
					n.toxics = append(n.toxics[:i], n.toxics[i+1:]...)
					break
				}
			}
			return n.onAll(t, func(proxy *toxiproxy.Proxy) error {
				return errors.Join(proxy.Toxics.RemoveToxic(ctx, t.name+"upstream"),
					proxy.Toxics.RemoveToxic(ctx, t.name+"downstream"))
			})
		},
	}
}

// onAll calls do concurrently for all proxies that a toxic hits.
func (n *Network) onAll(t toxic, do func(*toxiproxy.Proxy) error) error {
	var all sync.WaitGroup
	wrong := make(chan error, len(n.proxies))
	for r, proxy := range n.proxies {
		if t.hits(r) {
			all.Go(func() { wrong <- do(proxy) })
		}
	}
	all.Wait()
	close(wrong)
	var problems []error
	for err := range wrong {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// halfOpen makes all existing connections silent on both sides, as after a device on the way
// lost their state. At the end it closes them. New connections work.
func (n *Network) halfOpen(instances int) store.Action {
	silence := toxic{name: "silence ", kind: "timeout", instances: instances, attributes: map[string]any{"timeout": 0}}
	return store.Action{
		Hit: func(context.Context) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			err := n.onAll(silence, func(proxy *toxiproxy.Proxy) error { return put(proxy, silence) })
			for r, proxy := range n.proxies {
				if silence.hits(r) {
					n.retired = append(n.retired, proxy)
					delete(n.proxies, r)
				}
			}
			return err
		},
		End: func(context.Context) error {
			n.stopRetired()
			return nil
		},
	}
}

// stopRetired closes the silent connections.
func (n *Network) stopRetired() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, proxy := range n.retired {
		proxy.Stop()
	}
	n.retired = nil
}

// Prepare returns the Action of a network fault, see store.Faults.
func (n *Network) Prepare(f workloads.Fault) (store.Action, error) {
	milliseconds := func(d workloads.Duration) int64 { return time.Duration(d).Milliseconds() }
	switch f.Name {
	case workloads.Latency:
		if f.Jitter == 0 {
			return n.action(distant, f.Instances, map[string]any{"one_way_ns": time.Duration(f.Delay).Nanoseconds()},
				store.NoOutage), nil
		}
		return n.action("latency", f.Instances,
			map[string]any{"latency": milliseconds(f.Delay), "jitter": milliseconds(f.Jitter)}, store.NoOutage), nil
	case workloads.Bandwidth:
		return n.action(throttled, f.Instances, map[string]any{"bytes_per_second": 1000 * f.Rate}, store.NoOutage), nil
	case workloads.Reset:
		return n.action("reset_peer", f.Instances, map[string]any{"timeout": 0}, store.Throughout), nil
	case workloads.Partition:
		// Data sent meanwhile is delayed, not lost, as with TCP's retransmissions.
		return n.action(held, f.Instances, map[string]any{}, store.Throughout), nil
	case workloads.HalfOpen:
		return n.halfOpen(f.Instances), nil
	}
	return store.Action{}, fmt.Errorf("there is no fault %s of the network", f.Name)
}

// Close closes the proxies and their connections.
func (n *Network) Close() {
	if n == nil {
		return
	}
	n.stopRetired()
	n.mu.Lock()
	defer n.mu.Unlock()
	for r, proxy := range n.proxies {
		proxy.Stop()
		delete(n.proxies, r)
	}
}
