package token

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"sync/atomic"
)

// Names are the tokens that one Locker gives to its holders: a random UUID of its own and a number, as
// Redisson's are. Each is used once in the world, so that a script distinguishes a holder from all others.
type Names struct {
	instance string
	last     atomic.Uint64
}

// NewNames returns the names of a new instance.
func NewNames() *Names {
	var id [16]byte
	_, _ = rand.Read(id[:])                         // it never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // RFC 9562: version 4
	return &Names{instance: fmt.Sprintf("%x-%x-%x-%x-%x:", id[:4], id[4:6], id[6:8], id[8:10], id[10:])}
}

// Next returns a name that nobody had before, "<uuid>:<n>". It draws no randomness,
// so it costs one small allocation.
func (n *Names) Next() string {
	name := make([]byte, 0, 64)
	name = append(name, n.instance...)
	return string(strconv.AppendUint(name, n.last.Add(1), 10))
}
