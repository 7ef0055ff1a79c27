package faults

import (
	"fmt"
	"time"
)

// Distance makes a server seem far away: a proxy through which whatever is sent takes
// longer, in each direction and from the first connection on. What is sent together
// arrives together, so only latency is added.
type Distance struct {
	network *network
	addr    string
}

// NewDistance puts that much, in whole milliseconds, before the server at an address.
// The caller closes it.
func NewDistance(addr string, oneWay time.Duration) (*Distance, error) {
	n := newNetwork()
	n.toxics = []toxic{{
		name: "distance ", kind: "latency",
		attributes: map[string]any{"latency": oneWay.Milliseconds(), "jitter": 0},
	}}
	proxy, err := n.proxy(route{0, addr})
	if err != nil {
		return nil, fmt.Errorf("put a distance before %s: %w", addr, err)
	}
	return &Distance{n, proxy.Listen}, nil
}

// Addr is where to dial instead of the server.
func (d *Distance) Addr() string { return d.addr }

// Close ends the proxy with whatever still goes through it.
func (d *Distance) Close() { d.network.close() }
