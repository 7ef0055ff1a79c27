package disturb

import (
	"fmt"
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"

	"github.com/lockbench/lockbench/internal/pause"
)

// Distance makes a server seem far away: a proxy through which whatever is sent takes
// longer, in each direction and from the first connection on. What is sent together
// arrives together, so only latency is added.
type Distance struct {
	network *network
	addr    string
}

// NewDistance puts that much before the server at an address. The caller closes it.
func NewDistance(addr string, oneWay time.Duration) (*Distance, error) {
	n := newNetwork()
	n.toxics = []toxic{{name: "distance ", kind: distant, attributes: map[string]any{"one_way_ns": oneWay.Nanoseconds()}}}
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

// distance is a toxic that keeps each piece for a time. Toxiproxy's own latency has it of
// the time package, which makes up to two milliseconds of one.
type distance struct {
	OneWayNS int64 `json:"one_way_ns"`
}

const distant = "lockbench-distance"

// travellers sleep for all proxies; their descriptors are kept for the next ones.
var travellers pause.Sleepers

func init() { toxics.Register(distant, new(distance)) }

// GetBufferSize is how many pieces can be under way, as with latency.
func (*distance) GetBufferSize() int { return 1024 }

// Pipe passes each piece on when it has been under way for long enough.
func (d *distance) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case piece := <-stub.Input:
			if piece == nil {
				stub.Close()
				return
			}
			travellers.Sleep(nil, time.Duration(d.OneWayNS)-time.Since(piece.Timestamp))
			stub.Output <- piece
		}
	}
}
