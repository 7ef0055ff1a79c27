package redlock

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// These are the values of mode: the order in which a round sends its requests to the nodes.
const (
	Parallel   = "parallel"   // all at the same time
	Sequential = "sequential" // one after the other, always in the same order
)

// These are the values of release: when the nodes of a failed round are freed.
const (
	Quick = "quick" // at once
	Never = "none"  // when Acquire ends, or when the TTL expires
	// Granted is the unsafe form of Quick in published sample code. It frees only the nodes that answered yes within the
	// node timeout, even when a lease is released. A node whose yes was late or lost keeps the key until the TTL expires.
	Granted = "granted"
)

// These are the values of extend: how a lease is extended.
const (
	OnCall = "call"   // only by Lease.Extend
	Renew  = "script" // also automatically, every TTL/3
	// Again is the faulty form of Renew in published sample code. It repeats the SET NX of the acquire with the same
	// value, which always fails, because the lease's own key exists.
	Again = "again"
)

// Options are the options that a user can set, as in redlock:mode=sequential.
type Options struct {
	Mode        string        `opt:"mode" help:"how a round sends to the nodes: parallel or sequential"`
	NodeTimeout time.Duration `opt:"node-timeout" help:"longest wait for one node, but at most node-share of the TTL"`
	NodeShare   float64       `opt:"node-share" help:"largest share of the TTL that the wait for one node may take, up to 1"`
	MinDelay    time.Duration `opt:"min-delay" help:"shortest random sleep between two rounds"`
	MaxDelay    time.Duration `opt:"max-delay" help:"longest random sleep between two rounds"`
	Release     string        `opt:"release" help:"when the nodes of a failed round are freed: at once (quick), only when the acquire ends (none), or at once but only those that confirmed in time (granted: as in published samples; unsafe, only for measurements)"`
	Extend      string        `opt:"extend" help:"how a lease is extended: only by its holder's calls (call), also every TTL/3 by a script (script), or every TTL/3 by another SET NX (again: as in published samples; always fails, only for measurements)"`
	Drift       float64       `opt:"drift" help:"share of the TTL by which clocks may drift; 2ms are added (0: as in published samples; unsafe, only for measurements)"`
	MinValidity time.Duration `opt:"min-validity" help:"shortest remaining validity with which a lease is granted or extended"`
	GiveUp      int           `opt:"give-up" help:"consecutive rounds without a reachable majority after which an acquire fails"`
}

// Defaults returns the default options. The node timeout and the drift of 1 % are from the description of the
// algorithm, which gives 5 to 50 ms for the timeout. The sleep of 50 to 250 ms between rounds is redsync's.
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

// Validate returns the errors of all options, joined.
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

// Refine sets the caveats of the options from published sample code: release=granted, extend=again and drift=0.
func (o Options) Refine(info strategies.Info) strategies.Info {
	var caveats []string
	if o.Release == Granted {
		caveats = append(caveats, "as in published sample code, a node whose reply was late or lost is not freed, and "+
			"blocks the next client until the TTL expires")
	}
	if o.Extend == Again {
		caveats = append(caveats, "as in published sample code, an extension is a SET NX, which always fails because the "+
			"lease's own key exists, so the lease ends with its first TTL")
	}
	if o.Drift == 0 {
		caveats = append(caveats, "as in published sample code, the validity has no allowance for clock drift, so a "+
			"client whose clock is slow still relies on a lock that the nodes have granted to another client")
	}
	info.Caveat = strings.Join(caveats, "; ")
	return info
}

// suits returns an error if a lease with this TTL has less than min-validity left after the allowance for drift.
func (o Options) suits(ttl time.Duration) error {
	if most := Validity(ttl, 0, o.Drift); most < max(o.MinValidity, 1) {
		return fmt.Errorf("the TTL %v is too short for min-validity %v: only %v remain after the allowance for drift",
			ttl, o.MinValidity, most)
	}
	return nil
}

// timeout returns NodeTimeout, or NodeShare of the TTL if that is shorter.
func (o Options) timeout(ttl time.Duration) time.Duration {
	return min(o.NodeTimeout, time.Duration(o.NodeShare*float64(ttl)))
}

// Validity returns how long the holder may still rely on a lease: TTL − elapsed − (drift × TTL + 2 ms). elapsed is the
// time since the instant before the first command was sent.
//
// The 2 ms allow for the precision of expiry in Redis, which is a millisecond. The formula is from "Distributed Locks
// with Redis", redis.io, and its reference implementation.
func Validity(ttl, elapsed time.Duration, drift float64) time.Duration {
	return ttl - elapsed - time.Duration(math.Round(float64(ttl)*drift)) - 2*time.Millisecond
}
