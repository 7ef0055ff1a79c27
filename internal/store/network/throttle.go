package network

import (
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"

	"github.com/lockbench/lockbench/internal/pause"
)

// throttle is a toxic that limits the bytes per second. Toxiproxy's own bandwidth logs to
// standard error.
type throttle struct {
	BytesPerSecond int64 `json:"bytes_per_second"`
}

const throttled = "lockbench-throttle"

func init() { toxics.Register(throttled, new(throttle)) }

// Pipe passes each piece on after the time that it needs at this rate.
func (t *throttle) Pipe(stub *toxics.ToxicStub) {
	passOn(stub, func(piece *stream.StreamChunk) bool {
		return pause.Plain(stub.Interrupt, time.Duration(len(piece.Data))*time.Second/time.Duration(t.BytesPerSecond))
	})
}

// passOn passes each piece on after keep returns. If keep is interrupted it returns false; then
// the piece is passed on at once, because no data may be lost.
func passOn(stub *toxics.ToxicStub, keep func(*stream.StreamChunk) bool) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case piece := <-stub.Input:
			if piece == nil {
				stub.Close()
				return
			}
			whole := keep(piece)
			stub.Output <- piece
			if !whole {
				return
			}
		}
	}
}
