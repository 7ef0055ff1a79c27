package redlock

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// These are the values of mode: how a round sends to the nodes.
const (
	Parallel   = "parallel"   // all at the same time
	Sequential = "sequential" // one after the other, always in the same order
)

// These are the values of release: when the nodes of a failed round are freed.
const (
	Quick = "quick" // at once
	Never = "none"  // when Acquire ends, or by their TTL
	// Granted is Quick as in sample code, and unsafe: it frees only the nodes that answered yes in time, also when a
	// lease ends. A node whose yes was late or lost keeps the key for its TTL.
	Granted = "granted"
)

// These are the values of extend: how a lease is extended.
const (
	OnCall = "call"   // only by Lease.Extend
	Renew  = "script" // also automatically, every TTL/3
	// Again is Renew as in sample code, and faulty: it repeats the SET NX of the acquire with the same value, which
	// finds the key of the lease itself and so never extends it.
	Again = "again"
)

// Options of the lock.
type Options struct {
	Mode        string        `opt:"mode" help:"how a round asks the nodes: parallel or sequential"`
	NodeTimeout time.Duration `opt:"node-timeout" help:"longest wait for one node; at most node-share of the TTL is used"`
	NodeShare   float64       `opt:"node-share" help:"largest share of the TTL that one node may cost, 1 for all of it"`
	MinDelay    time.Duration `opt:"min-delay" help:"shortest random sleep between two rounds"`
	MaxDelay    time.Duration `opt:"max-delay" help:"longest random sleep between two rounds"`
	Release     string        `opt:"release" help:"give the nodes of a failed round back at once (quick), only when the acquire ends (none), or at once but never one whose yes was lost (granted: as in samples; unsafe, to be measured)"`
	Extend      string        `opt:"extend" help:"extend a lease when its holder asks (call), by itself every TTL/3 (script), or so by acquiring again (again: as in samples, always fails; to be measured)"`
	Drift       float64       `opt:"drift" help:"share of the TTL by which clocks may drift; 2ms are added (0: as in samples; unsafe, to be measured)"`
	MinValidity time.Duration `opt:"min-validity" help:"least validity that a lease may start with"`
	GiveUp      int           `opt:"give-up" help:"rounds in a row without a reachable majority after which an acquire fails"`
}

// Defaults returns a node timeout from the range in the algorithm's description (5 to 50 ms), the drift of 1 % from
// there, and redsync's 50 to 250 ms between rounds.
func Defaults() Options {
	return Options{
		Mode:        Parallel,
		NodeTimeout: 50 * time.Millisecond,
		NodeShare:   0.25,
		MinDelay:    50 * time.Millisecond,
		MaxDelay:    250 * time.Millisecond,
		Release:     Quick,
		Extend:      OnCall,
		Drift:       0.01,
		GiveUp:      3,
	}
}

// Validate returns all errors, joined.
func (o Options) Validate() error {
	var problems []error
	fault := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	fault(o.Mode != Parallel && o.Mode != Sequential, "no mode %q (there are: %s, %s)", o.Mode, Parallel, Sequential)
	fault(o.Release != Quick && o.Release != Never && o.Release != Granted,
		"no release %q (there are: %s, %s, %s)", o.Release, Quick, Never, Granted)
	fault(o.Extend != OnCall && o.Extend != Renew && o.Extend != Again,
		"no extend %q (there are: %s, %s, %s)", o.Extend, OnCall, Renew, Again)
	fault(o.NodeTimeout < time.Millisecond, "node-timeout must be at least 1ms, not %v", o.NodeTimeout)
	fault(!(o.NodeShare > 0 && o.NodeShare <= 1), "node-share must be a share above 0 and up to 1, not %v", o.NodeShare)
	fault(o.MinDelay < 0, "min-delay must be at least 0, not %v", o.MinDelay)
	fault(o.MaxDelay < o.MinDelay, "max-delay %v is smaller than min-delay %v", o.MaxDelay, o.MinDelay)
	fault(!(o.Drift >= 0 && o.Drift < 1), "drift must be a share from 0 to below 1, not %v", o.Drift)
	fault(o.MinValidity < 0, "min-validity must be at least 0, not %v", o.MinValidity)
	fault(o.GiveUp < 1, "give-up must be at least 1 round, not %d", o.GiveUp)
	return errors.Join(problems...)
}

// Refine describes the faults of the variants from sample code.
func (o Options) Refine(info strategies.Info) strategies.Info {
	var caveats []string
	if o.Release == Granted {
		caveats = append(caveats, "sample code of articles: a node whose yes was late or lost is not given back, and "+
			"blocks the next client until its TTL is over")
	}
	if o.Extend == Again {
		caveats = append(caveats, "sample code of articles: an extension by SET NX meets the lease's own key, so every "+
			"extension fails and the lease ends with its first TTL")
	}
	if o.Drift == 0 {
		caveats = append(caveats, "sample code of articles: nothing is subtracted for clocks that differ, so a client "+
			"whose clock is slow still relies on a lock that the nodes have given to another")
	}
	info.Caveat = strings.Join(caveats, "; ")
	return info
}

// suits returns the reason why these options do not fit leases of the TTL, or nil.
func (o Options) suits(ttl time.Duration) error {
	if most := Validity(ttl, 0, o.Drift); most < max(o.MinValidity, 1) {
		return fmt.Errorf("no lease of %v can be valid for min-validity %v: %v remain after drift", ttl, o.MinValidity,
			most)
	}
	return nil
}

// timeout returns the node timeout for a lease of the TTL.
func (o Options) timeout(ttl time.Duration) time.Duration {
	return min(o.NodeTimeout, time.Duration(o.NodeShare*float64(ttl)))
}

// Validity returns how long the holder may still rely on a lease: TTL − elapsed − (drift × TTL + 2 ms). elapsed is
// the time since the moment before the first command was sent.
//
// The 2 ms are for the expiry of Redis, which counts in milliseconds. The formula is from "Distributed Locks with
// Redis", redis.io, and its reference implementation.
func Validity(ttl, elapsed time.Duration, drift float64) time.Duration {
	return ttl - elapsed - time.Duration(math.Round(float64(ttl)*drift)) - 2*time.Millisecond
}
