package gated

import (
	"context"
	"sync"

	"github.com/lockbench/lockbench/strategies"
)

// lease is one with its place inside the gate.
type lease struct {
	inner strategies.Lease
	gates *gates
	key   string
	once  sync.Once
}

// Release releases the strategy's lease, then lets the next caller in, however the
// release went.
func (held *lease) Release(ctx context.Context) error {
	defer held.once.Do(func() { held.gates.leave(held.key) })
	return held.inner.Release(ctx)
}

// The capabilities of a lease, to be embedded.
type (
	extends = strategies.Extender
	fences  = strategies.Fenced
	times   = strategies.Timed
	watches = strategies.Watched
)

// wrap gives a lease the very capabilities that the strategy's has: they are found by
// assertion, so that each set of them is a type of its own.
func wrap(held *lease) strategies.Lease {
	e, canExtend := held.inner.(extends)
	f, isFenced := held.inner.(fences)
	t, isTimed := held.inner.(times)
	w, isWatched := held.inner.(watches)
	set := 0
	for bit, has := range []bool{canExtend, isFenced, isTimed, isWatched} {
		if has {
			set |= 1 << bit
		}
	}
	switch set {
	case 0b0001:
		return struct {
			*lease
			extends
		}{held, e}
	case 0b0010:
		return struct {
			*lease
			fences
		}{held, f}
	case 0b0011:
		return struct {
			*lease
			extends
			fences
		}{held, e, f}
	case 0b0100:
		return struct {
			*lease
			times
		}{held, t}
	case 0b0101:
		return struct {
			*lease
			extends
			times
		}{held, e, t}
	case 0b0110:
		return struct {
			*lease
			fences
			times
		}{held, f, t}
	case 0b0111:
		return struct {
			*lease
			extends
			fences
			times
		}{held, e, f, t}
	case 0b1000:
		return struct {
			*lease
			watches
		}{held, w}
	case 0b1001:
		return struct {
			*lease
			extends
			watches
		}{held, e, w}
	case 0b1010:
		return struct {
			*lease
			fences
			watches
		}{held, f, w}
	case 0b1011:
		return struct {
			*lease
			extends
			fences
			watches
		}{held, e, f, w}
	case 0b1100:
		return struct {
			*lease
			times
			watches
		}{held, t, w}
	case 0b1101:
		return struct {
			*lease
			extends
			times
			watches
		}{held, e, t, w}
	case 0b1110:
		return struct {
			*lease
			fences
			times
			watches
		}{held, f, t, w}
	case 0b1111:
		return struct {
			*lease
			extends
			fences
			times
			watches
		}{held, e, f, t, w}
	}
	return held
}
