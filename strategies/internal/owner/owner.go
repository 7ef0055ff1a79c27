// Package owner names the holders of locks: every name is used once in the
// world, so that a script can tell a holder from all others.
package owner

import (
	"crypto/rand"
	"strconv"
	"sync/atomic"
)

// Names are the names one Locker gives to its holders: a random text of its own
// and a number.
type Names struct {
	instance string
	last     atomic.Uint64
}

// New returns the names of a new instance.
func New() *Names { return &Names{instance: rand.Text() + ":"} }

// Next is a name that nobody had before, "<random>:<n>". It draws no randomness,
// so it costs one small allocation.
func (n *Names) Next() string {
	name := make([]byte, 0, 64)
	name = append(name, n.instance...)
	return string(strconv.AppendUint(name, n.last.Add(1), 10))
}

// Of is the lasting name of somebody who is called so within this instance. It
// is never equal to one of Next's.
func (n *Names) Of(holder string) string { return n.instance + "as:" + holder }
