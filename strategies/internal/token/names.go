package token

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"sync/atomic"
)

// Names generates the tokens for the holders of one Locker. As in Redisson, a token consists of the Locker's random
// UUID and a number. Each token is globally unique, so that a script can distinguish a holder from all others.
type Names struct {
	instance string
	last     atomic.Uint64
}

// NewNames returns Names with a new UUID.
func NewNames() *Names {
	var id [16]byte
	_, _ = rand.Read(id[:])                         // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // RFC 9562: version 4
	return &Names{instance: fmt.Sprintf("%x-%x-%x-%x-%x:", id[:4], id[4:6], id[6:8], id[8:10], id[10:])}
}

// Next returns a new token, "<uuid>:<n>". It uses no random numbers and makes only one small allocation.
func (n *Names) Next() string {
	name := make([]byte, 0, 64)
	name = append(name, n.instance...)
	return string(strconv.AppendUint(name, n.last.Add(1), 10))
}
