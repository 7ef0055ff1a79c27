//go:build !race

package model

import "slices"

// This file defines the state of the model's server, which is one lock and its queue. A real Redis executes SET NX GET,
// RPUSHX and the six scripts on this state (scripts_test.go).

// ident is the id of a lease or of a slot in the queue: 1 to 7 belong to process 0, 9 to 15 to process 1; 0 is none.
type ident uint8

const idsEach = 8

func (i ident) process() int8 { return int8(i / idsEach) }

// token is a fencing token. The model keeps only the order of the tokens and the distances between them, limited to
// far.
type token int16

// far is larger than any number that a script adds to a token. Larger distances between tokens therefore have no
// effect, and rank reduces them to far.
const far = 8

// leaseTime is the length of a lease in ticks.
const leaseTime = 1

// longest is the length in ticks of an extended lease.
const longest = leaseTime + 1

type refusal uint8

const (
	servesAll     refusal = iota
	refusesWrite          // READONLY, NOREPLICAS, MISCONF
	refusesGrowth         // OOM
)

const slots = 6

type redisState struct {
	owner  ident
	marked bool
	left   int8 // remaining ticks of the owner
	queue  [slots]ident
	kept   bool    // the queue has a TTL
	hears  [2]bool // whether a connection listens to the channel of a process
	fault  refusal
	mute   bool // SPUBLISH is forbidden
}

type verb uint8

const (
	set verb = iota + 1 // SET NX GET, TIME
	enqueue
	follow // RPUSHX
	free   // the release of a lock without waiters
	release
	leave
	check
	extend
)

func (v verb) String() string {
	return [...]string{"-", "set", "queue", "rpushx", "free", "release", "leave", "check", "extend"}[v]
}

type mode uint8

const (
	wait mode = iota
	try
	again
	front
)

func (m mode) String() string { return [...]string{"wait", "try", "again", "front"}[m] }

type command struct {
	verb  verb
	by    int8 // which process sends it
	mode  mode
	id    ident
	more  [2]ident // of leave
	alone bool     // of leave: they were never queued
	entry ident    // of release
	seen  ident    // of check
	ttl   int8     // of extend
	token token    // of release
}

type outcome uint8

const (
	answered outcome = iota
	refused          // a write was
)

type reply struct {
	outcome  outcome
	newOwner ident // "id token lock" …
	code     int8  // … or a number
	owner    ident
	left     int8 // PTTL: 0 for none
	slot     int8 // from 0; -1 for none
	token    token
}

// message is a grant message that a script publishes to a process.
type message struct {
	id    ident
	heard bool // a receiver was counted by the server
	token token
}

// length returns the number of elements before the first zero value. The model stores lists in arrays of fixed size.
func length[T comparable](list []T) int {
	var none T
	if n := slices.Index(list, none); n >= 0 {
		return n
	}
	return len(list)
}

// take removes the element at i from a list, moves the later ones up, and returns the element.
func take[T any](list []T, i int) (taken T) {
	taken = list[i]
	copy(list[i:], list[i+1:])
	clear(list[len(list)-1:])
	return taken
}

func (s *redisState) length() int { return length(s.queue[:]) }

func (s *redisState) find(id ident) int { return slices.Index(s.queue[:], id) }

func (s *redisState) clear() { s.owner, s.marked, s.left = 0, false, 0 }
