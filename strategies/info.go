package strategies

import "strings"

// Info describes a strategy as data. Tables show it, the conformance suite tests its claims, and the audit of a run
// counts only breaches of these claims.
type Info struct {
	Name    string // as on the command line and in every output
	Summary string // one line that names the idea
	Doc     string // the full description, in the syntax of a Go doc comment
	Claims  Claims

	// Capacity is the number of clients that may hold one key at the same time: 1 for a lock, N for a semaphore, 0 for
	// no limit.
	Capacity int
	// Store is the name of the store that keeps the lock, such as etcd; "" means Redis.
	Store string
	// Nodes is the smallest number of independent nodes of a store that the strategy needs. It is 0 for a strategy that
	// lives in the process and uses no store.
	Nodes int
	// MaxInstances is the largest number of application instances across which the strategy works. 0 means any number. 1
	// means that the strategy excludes only clients of one process.
	MaxInstances int

	// Since is the oldest version of Redis on which the strategy works; the zero Since means any version.
	Since Since
	// NoCluster is the reason why the strategy cannot run on a Redis Cluster; "" if it can.
	NoCluster string

	// OnlyCounter marks a strategy that is not a lock: it increments a counter itself and can do no other work.
	OnlyCounter bool

	// Caveat describes when a strategy that is unsafe by design fails; it is "" for all other strategies.
	Caveat string
	// Assumes is a condition that the claims need in addition to the conditions that all similar locks need. It is a text
	// that follows the word "if". "" means no additional condition.
	Assumes string
	// Keys are patterns for the full names of all keys that the strategy keeps for a lock. In a pattern {key} stands for
	// the lock's key, which has a hash tag, and * for hexadecimal digits. Clean-up removes only keys that match a pattern.
	// If Keys is nil, Define sets it to {key} alone.
	Keys []string
	// Format is the name of the format of the strategy's keys, values and messages, if other locks use the same format.
	// Locks with the same format exclude and wake each other. "" means that no other lock uses this strategy's format.
	Format string
	// Persistent are patterns for the keys that the strategy leaves in the store on purpose. {key} stands for the lock's
	// key. Any other key that is still in the store after the lock was released is a leftover.
	Persistent []string
	// Limits are the checks of the conformance suite that the strategy fails by design, with the reasons.
	Limits []Limit
	// Unwritten is true if the store never writes the locks to disk, regardless of its persistence settings.
	Unwritten bool
	// Session is true if a lease is bound to its holder's session, which the client keeps alive. Such a lease may end
	// earlier or later than one TTL after the grant. A holder may learn only from the error of Release that the session
	// has ended.
	Session bool
	// Rights are the rights that the strategy's Redis user needs. A strategy that uses no store needs none.
	Rights Rights
	// Connections are the connections that an instance opens in addition to its pool. Before a run they are checked
	// against the connection limits of the server and the operating system.
	Connections Connections
	// BlackBox marks a strategy that cannot report attempts and wake-ups, such as a third-party library. Reports show the
	// numbers of its attempts and wake-ups as unknown.
	BlackBox bool
	// Driver is true if the strategy's clients run in a process of another program, which reports their operations.
	Driver bool
	// Counts is true for a Driver whose clients can increment a counter, which --work counter requires.
	Counts bool
	// Connects lists the ways in which a Driver can connect in addition to plain TCP: "unix" means unix sockets, "tls"
	// means TLS with certificates.
	Connects []string
	// Library is the path of the third-party module that implements the lock, such as github.com/bsm/redislock. It is ""
	// if the lock is not that of a third-party library.
	Library string
	// Libraries are the third-party libraries that implement this lock. They send the same commands, or they use the same
	// keys and messages and wait in the same way. Output that names a single library names the first.
	Libraries []Library
	// Package is the import path of the strategy's Go package. If it is empty, Define fills in the package of the
	// options.
	Package string
}

// Library names a third-party lock library, and the library's function that creates or acquires the lock.
type Library struct {
	Language string `json:"language"` // Go, Java, Python
	Package  string `json:"package"`  // its name in its language's package registry: org.redisson:redisson
	Call     string `json:"call"`     // the function that creates or acquires the lock: getFairLock
}

// String returns the library and its call in one line, such as "org.redisson:redisson getLock (Java)".
func (l Library) String() string { return l.Package + " " + l.Call + " (" + l.Language + ")" }

// OnRedis reports whether the strategy locks in Redis, neither in another store nor in the process.
func (i Info) OnRedis() bool { return i.Nodes > 0 && i.Store == "" }

// Since is the oldest version of Redis on which a lock works, and the feature that older versions lack.
type Since struct {
	Redis string // 7.0
	For   string // sharded channels
	// Valkey is the first version of Valkey with the feature, in Valkey's numbering, such as 9.0. If it is "", a Valkey
	// server works if the version of Redis that it reports is at least the version in the field Redis.
	Valkey string
	// Instead is the option with which the lock also works on an older server, such as release=script; "" if there is
	// none.
	Instead string
}

// String returns the needed versions and the feature: "Redis 7.0 (sharded channels)", or "Redis 8.4 or Valkey 9.0
// (DELEX, DELIFEQ)".
func (s Since) String() string {
	needed := "Redis " + s.Redis
	if s.Valkey != "" {
		needed += " or Valkey " + s.Valkey
	}
	return needed + " (" + s.For + ")"
}

// Limit is a check of the conformance suite, package locktest, that a strategy fails by design.
type Limit struct {
	Check   string // its name
	Because string // the reason, as text that can follow the word "since"
}

// ByRedisClock returns the Limit of a lock whose leases end by the clock of Redis. If this clock is set forward, the
// leases end too early.
func ByRedisClock() Limit {
	return Limit{Check: "clock set forward", Because: "Redis ends its leases by Redis's own clock"}
}

// Connections is the number of connections that an instance opens in addition to its command pool.
type Connections struct {
	PerInstance int // once for the instance, such as for a subscription
	PerWaiter   int // for each waiting client, such as for a blocking command
}

// Claims are the guarantees that a strategy gives. Package locktest tests each claim; every run audits exclusion and
// fencing.
type Claims struct {
	Exclusion bool // a lock never has more than Capacity holders with valid leases
	Recovery  bool // after a holder dies, its lock becomes free when the TTL expires
	FIFO      bool // leases are granted in the order of the requests
	// Bounded is a bound on overtaking that holds while no lease expires and no connection breaks. From the moment when
	// Redis registers a waiter until the waiter gets the lock, every client with a later request gets the lock at most
	// once, plus once for each client of the waiter's instance that waited before the waiter. FIFO implies Bounded.
	Bounded   bool
	Fencing   bool // tokens strictly increase
	Reentrant bool // the owner may acquire the lock again while holding it
	Watchdog  bool // a live holder's lease is renewed until it is released
}

// List returns the names of the claimed guarantees in a fixed order.
func (c Claims) List() []string {
	var names []string
	for _, claim := range []struct {
		made bool
		name string
	}{
		{c.Exclusion, "exclusion"},
		{c.Recovery, "recovery"},
		{c.FIFO, "FIFO"},
		{c.Bounded && !c.FIFO, "bounded overtaking"},
		{c.Fencing, "fencing"},
		{c.Reentrant, "re-entrant"},
		{c.Watchdog, "watchdog"},
	} {
		if claim.made {
			names = append(names, claim.name)
		}
	}
	return names
}

// String lists the claimed guarantees; "none" if there are none.
func (c Claims) String() string {
	if names := c.List(); len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return "none"
}
