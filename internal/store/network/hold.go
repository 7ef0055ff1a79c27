package network

import (
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"
)

// hold is a toxic that keeps all data until it is removed. Toxiproxy's own latency waits 5 s,
// at the end of the fault, for each piece whose connection was closed meanwhile.
type hold struct{}

const held = "lockbench-hold"

// unread is how long a piece may wait for its reader after the hold.
const unread = 300 * time.Millisecond

func init() { toxics.Register(held, new(hold)) }

// GetBufferSize is the number of pieces that it can keep, as for latency.
func (*hold) GetBufferSize() int { return 1024 }

// Pipe passes nothing on.
func (*hold) Pipe(stub *toxics.ToxicStub) { <-stub.Interrupt }

// Cleanup passes on the kept pieces, or closes a connection that has no reader.
func (*hold) Cleanup(stub *toxics.ToxicStub) {
	for len(stub.Input) > 0 {
		piece := <-stub.Input
		if piece == nil || stub.WriteOutput(piece, unread) != nil {
			stub.Close()
			return
		}
	}
}
