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
