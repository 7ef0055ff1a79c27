package network

import (
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"

	"github.com/lockbench/lockbench/internal/pause"
)

// distance is a toxic that delays each piece. Toxiproxy's own latency uses the time package,
// whose sleeps may be two milliseconds too long.
type distance struct {
	OneWayNS int64 `json:"one_way_ns"`
}

const distant = "lockbench-distance"

// coarse is how late the time package may be. The last part of a sleep uses travellers instead.
const coarse = 5 * time.Millisecond

// travellers sleeps for all proxies, so that its descriptors are reused.
var travellers pause.Sleepers

func init() { toxics.Register(distant, new(distance)) }

// GetBufferSize is the number of pieces that can be under way, as for latency.
func (*distance) GetBufferSize() int { return 1024 }

// Pipe passes each piece on after its delay.
func (d *distance) Pipe(stub *toxics.ToxicStub) {
	passOn(stub, func(piece *stream.StreamChunk) bool {
		end := piece.Timestamp.Add(time.Duration(d.OneWayNS))
		if left := time.Until(end); left > coarse && !pause.Plain(stub.Interrupt, left-coarse) {
			return false
		}
		travellers.Sleep(nil, time.Until(end))
		return true
	})
}
