package network

import (
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"

	"github.com/lockbench/lockbench/internal/pause"
)

// distance is a toxic that keeps each piece for a time. Toxiproxy's own latency has it of
// the time package, which makes up to two milliseconds of one.
type distance struct {
	OneWayNS int64 `json:"one_way_ns"`
}

const distant = "lockbench-distance"

// coarse is what the time package may be late by: the end of a sleep is left to others.
const coarse = 5 * time.Millisecond

// travellers sleep for all proxies; their descriptors are kept for the next ones.
var travellers pause.Sleepers

func init() { toxics.Register(distant, new(distance)) }

// GetBufferSize is how many pieces can be under way, as with latency.
func (*distance) GetBufferSize() int { return 1024 }

// Pipe passes each piece on when it has been under way for long enough.
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
