package disturb

import (
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"
)

// throttle is a toxic that lets so many bytes through in a second. Toxiproxy's own
// bandwidth writes what it does to standard error.
type throttle struct {
	BytesPerSecond int64 `json:"bytes_per_second"`
}

const throttled = "lockbench-throttle"

func init() { toxics.Register(throttled, new(throttle)) }

// Pipe passes each piece on once it could have gone over the line. An interrupted
// one goes at once, for nothing may be lost.
func (t *throttle) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case piece := <-stub.Input:
			if piece == nil {
				stub.Close()
				return
			}
			timer := time.NewTimer(time.Duration(len(piece.Data)) * time.Second / time.Duration(t.BytesPerSecond))
			select {
			case <-timer.C:
				stub.Output <- piece
			case <-stub.Interrupt:
				timer.Stop()
				stub.Output <- piece
				return
			}
		}
	}
}
