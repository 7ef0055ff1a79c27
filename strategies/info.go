package strategies

import "strings"

// Info is what a strategy says of itself, as data: tables print it, the conformance suite
// tests what it claims, and the audit counts only the breach of a claim.
type Info struct {
	Name    string // as on the command line and in every output
	Summary string // one line: the idea
	Doc     string // all there is to know, written as a Go doc comment
	Claims  Claims

	// Capacity is how many may hold one key at a time: 1 for a lock, N for a
	// semaphore. 0 means that it does not limit them.
	Capacity int
	// Store is where it locks, by the name of the store: etcd, postgres; "" means Redis.
	Store string
	// Nodes is the least number of independent nodes it needs of its store; 0 for a
	// strategy that lives in the process and never talks to one.
	Nodes int
	// MaxInstances is the largest number of application instances that it works across; 0
	// means any number, and 1 that it excludes inside one process only.
	MaxInstances int

	// Since is the first Redis that has all it needs; the zero Since is any.
	Since Since
	// NoCluster is why it cannot run on a Redis Cluster; "" if it can.
	NoCluster string

	// OnlyCounter marks what is no lock: it increments a counter itself, and can do no other
	// work.
	OnlyCounter bool

	// Caveat says what breaks a strategy that is unsafe by design; "" for all others.
	Caveat string
	// Assumes is what the claims need besides what others of their kind need, as text after
	// "if"; "" means nothing.
	Assumes string
	// Keys are the names of all keys that it keeps for a lock, whole, as patterns in which {key}
	// stands for the lock's key, which has a hash tag, and * for hexadecimal digits. Only keys
	// with such names are ever removed. None means {key} alone.
	Keys []string
	// Format names the format of its keys, their values and its messages, if other locks have the same: those exclude
	// and wake each other. "" means that no other has.
	Format string
	// Persistent names the keys that it leaves on purpose, as patterns in which {key} stands
	// for the lock's key. Every other key that stays is a leftover.
	Persistent []string
	// Limits are the checks of the conformance suite that it does not pass, by design.
	Limits []Limit
	// Unwritten says that its locks are never written to disk, however the store keeps what
	// it confirms.
	Unwritten bool
	// Session says that a lease is its holder's session, which the client keeps alive: it may
	// end earlier or later than a TTL after the grant. A holder whose session has ended
	// learns that from Release at the latest.
	Session bool
	// Rights are what its Redis user needs; none for a strategy that lives in the process.
	Rights Rights
	// Connections are those beside the instance's pool, so that limits can be checked before
	// a run.
	Connections Connections
	// BlackBox marks a strategy that cannot report attempts and wake-ups, such as a
	// third-party library; those figures then print as unknown.
	BlackBox bool
	// Driver says that its clients run in a process of another program, which reports what they did.
	Driver bool
	// Counts says of a Driver that its clients can do the work of a counter.
	Counts bool
	// Connects says of a Driver how it connects other than by plain TCP: "unix" by sockets, "tls" with certificates.
	Connects []string
	// Library is the module that has the lock, if that is a third-party library:
	// github.com/bsm/redislock.
	Library string
	// Libraries are the third-party libraries with this lock: they do the same, or share its
	// keys and messages and wait for them in the same way. The first is the one to name.
	Libraries []Library
	// Package is the import path of its Go package; if it is empty, Define fills in that of
	// the options.
	Package string
}

// Library is a third-party lock library.
type Library struct {
	Language string `json:"language"` // Go, Java, Python
	Package  string `json:"package"`  // as its language's tools name it: org.redisson:redisson
	Call     string `json:"call"`     // what makes or takes the lock: getFairLock
}

// String names the library and its call: org.redisson:redisson getLock (Java).
func (l Library) String() string { return l.Package + " " + l.Call + " (" + l.Language + ")" }

// OnRedis says whether it locks in Redis: neither in another store nor in the process.
func (i Info) OnRedis() bool { return i.Nodes > 0 && i.Store == "" }

// Since is a version of Redis, and what a lock needs that an older one does not have.
type Since struct {
	Redis string // 7.0
	For   string // sharded channels
	// Valkey is the version of Valkey, by its own count, where that is no matter of the Redis with which it is
	// compatible: 9.0; "" where it is.
	Valkey string
	// Instead is the option of the lock that serves on an older server: release=script; "" if none does.
	Instead string
}

// String says what is needed: Redis 7.0 (sharded channels), or Redis 8.4 or Valkey 9.0 (DELEX, DELIFEQ).
func (s Since) String() string {
	needed := "Redis " + s.Redis
	if s.Valkey != "" {
		needed += " or Valkey " + s.Valkey
	}
	return needed + " (" + s.For + ")"
}

// Limit is a check of the conformance suite, locktest, that a strategy does not pass.
type Limit struct {
	Check   string // its name
	Because string // why not, to follow "since"
}

// ByRedisClock is the limit of a lock whose leases Redis ends by its own clock.
func ByRedisClock() Limit {
	return Limit{Check: "clock set forward", Because: "Redis ends its leases by Redis's own clock"}
}

// Connections is what an instance opens beside its command pool.
type Connections struct {
	PerInstance int // for example one subscription connection
	PerWaiter   int // for example one blocking connection for each waiting client
}

// Claims are the guarantees a strategy gives. locktest tests each; every run
// audits exclusion and fencing.
type Claims struct {
	Exclusion bool // never more holders than Capacity while leases are valid
	Recovery  bool // a dead holder's lock frees by itself after the TTL
	FIFO      bool // leases are granted in the order in which they were asked for
	// Bounded is a bound on overtaking, while no lease runs out and no connection breaks.
	// From when Redis has heard of a wait until the wait is served, every other client that
	// asks later is served at most once, and once more for each client of the waiter's own
	// instance that waited before it. FIFO implies it.
	Bounded   bool
	Fencing   bool // tokens strictly grow
	Reentrant bool // the owner may acquire again
	Watchdog  bool // a living holder's lease is renewed until it is released
}

// List returns the claimed guarantees' names, in a fixed order.
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

// String lists the claimed guarantees, or says "none".
func (c Claims) String() string {
	if names := c.List(); len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return "none"
}
