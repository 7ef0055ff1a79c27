package network

import (
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"
)

// hold is a toxic that keeps what is sent until it is taken off. Toxiproxy's own latency
// would do, but for connections that somebody has closed meanwhile: each of the pieces
// that nobody reads any more keeps the end of the fault waiting for 5 s.
type hold struct{}

const held = "lockbench-hold"

// unread is how long a piece may wait for its reader once it may go on.
const unread = 300 * time.Millisecond

func init() { toxics.Register(held, new(hold)) }

// GetBufferSize is how many pieces it can keep, as with latency.
func (*hold) GetBufferSize() int { return 1024 }

// Pipe takes nothing.
func (*hold) Pipe(stub *toxics.ToxicStub) { <-stub.Interrupt }

// Cleanup passes on what has gathered, or closes a connection that nobody reads.
func (*hold) Cleanup(stub *toxics.ToxicStub) {
	for len(stub.Input) > 0 {
		piece := <-stub.Input
		if piece == nil || stub.WriteOutput(piece, unread) != nil {
			stub.Close()
			return
		}
	}
}
