package token

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// ErrNoNative is the error of Native.Delete if neither DELIFEQ nor DELEX can be used: the server does not support the
// command, or the user has no right to it.
var ErrNoNative = errors.New("the server runs neither DELIFEQ (Valkey 9.0) nor DELEX (Redis 8.4) for this user")

// Native deletes a key if it holds a given value, by a single command: DELIFEQ on Valkey 9.0, DELEX on Redis 8.4. The
// first call of Delete determines which of the two commands the server supports, and Native remembers the result. The
// zero value is ready for use.
type Native struct{ way atomic.Int32 }

// These are the values of way: the command that is known to work, or byNone if the user can run neither. Delete tries
// the commands in this order.
const (
	byDelIfEq = 1 + iota
	byDelEx
	byNone
)

// Known reports whether a call has determined which of the two commands the server supports, if any.
func (n *Native) Known() bool { return n.way.Load() != 0 }

// forget makes the next call try both commands again. It is for a caller that has no other way to release.
func (n *Native) forget() { n.way.Store(0) }

// Delete deletes the key if it holds the value, and reports whether it did. send sends one command and returns its
// reply. key and value are pointers, which avoids allocations in go-redis.
func (n *Native) Delete(key, value *string, send func(words ...any) (any, error)) (deleted bool, err error) {
	known := n.way.Load()
	var unknown error
	for way := max(known, byDelIfEq); way < byNone; way++ {
		var reply any
		if way == byDelIfEq {
			reply, err = send("delifeq", key, value)
		} else {
			reply, err = send("delex", key, "ifeq", value)
		}
		if !redis.HasErrorPrefix(err, "unknown command") && !redis.HasErrorPrefix(err, "NOPERM") {
			if known == 0 && err == nil {
				n.way.Store(way)
			}
			return reply == any(int64(1)), err
		}
		n.way.CompareAndSwap(way, way+1) // the known command may fail after a failover to another version
		unknown = errors.Join(unknown, err)
	}
	if known == 0 {
		n.way.Store(byNone)
	}
	if unknown != nil {
		return false, fmt.Errorf("%w: %w", ErrNoNative, unknown)
	}
	return false, ErrNoNative
}
