//go:build !race

package model

import "slices"

// The server of the model: what SET NX GET, RPUSHX and the five scripts do to one lock and
// its queue, written anew in Go. replay_test.go holds it against the scripts.

// ident is that of a lease or of a place in the queue: 1 to 7 are process 0's, 9 to 15
// process 1's; 0 is none.
type ident uint8

const idsEach = 8

func (i ident) process() int8 { return int8(i / idsEach) }

// token is a fencing token. Redis's clock is the highest so far, and far beyond it at every look.
type token int16

// far is more than a script adds to a token.
const far = 8

// leaseTime is how many ticks a lease lasts.
const leaseTime = 1

// longest is a lease's that was extended.
const longest = leaseTime + 1

type refusal uint8

const (
	servesAll     refusal = iota
	refusesWrite          // READONLY, NOREPLICAS, MISCONF
	refusesGrowth         // OOM
)

const places = 6

type server struct {
	owner  ident
	marked bool
	left   int8 // ticks that the owner has
	queue  [places]ident
	kept   bool    // the queue has a TTL
	hears  [2]bool // somebody listens to the channel of a process
	fault  refusal
	mute   bool // SPUBLISH is forbidden
}

type verb uint8

const (
	set verb = iota + 1 // SET NX GET, TIME
	enqueue
	follow // RPUSHX
	release
	leave
	check
	extend
	verbs
)

func (v verb) String() string {
	return [...]string{"-", "set", "queue", "rpushx", "release", "leave", "check", "extend"}[v]
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
	outcome outcome
	told    ident // "id token lock" …
	code    int8  // … or a number
	owner   ident
	left    int8 // PTTL: 0 for none
	place   int8 // from 0; -1 for none
	token   token
}

// message is what SPUBLISH says to a process.
type message struct {
	id    ident
	heard bool // by somebody whom the server counts
	token token
}

// script is one that runs.
type script struct {
	*server
	planted mistake
	clock   *token
	dirty   bool
	said    []message
}

// abort is a write that is refused: it ends the script.
type abort struct{}

// write is what Redis asks before a command that writes. A script that has written is
// refused nothing any more.
func (s *script) write(grows bool) {
	if !s.dirty && (s.fault == refusesWrite || s.fault == refusesGrowth && grows) {
		panic(abort{})
	}
	s.dirty = true
}

func (s *script) now() token {
	*s.clock += far
	return *s.clock
}

// length is that of a list, whose array has zero values behind it.
func length[T comparable](list []T) int {
	var none T
	if n := slices.Index(list, none); n >= 0 {
		return n
	}
	return len(list)
}

// take takes an element out of a list.
func take[T any](list []T, i int) (taken T) {
	taken = list[i]
	copy(list[i:], list[i+1:])
	clear(list[len(list)-1:])
	return taken
}

func (s *server) length() int { return length(s.queue[:]) }

func (s *server) find(id ident) int { return slices.Index(s.queue[:], id) }

// remove takes an entry out. Redis keeps no empty list.
func (s *server) remove(i int) ident {
	id := take(s.queue[:], i)
	s.kept = s.kept && s.queue[0] != 0
	return id
}

func (s *server) pushFront(id ident) {
	copy(s.queue[1:], s.queue[:])
	s.queue[0] = id
}

// pushBack returns the length.
func (s *server) pushBack(id ident) int {
	n := s.length()
	s.queue[n] = id
	return n + 1
}

func (s *server) free() { s.owner, s.marked, s.left = 0, false, 0 }

func (s *script) expireQueue() {
	s.write(false)
	s.kept = s.queue[0] != 0
}

// exec carries out a command, and says what was published.
func (s *server) exec(c command, clock *token, planted mistake) (r reply, said []message) {
	x := &script{server: s, planted: planted, clock: clock}
	defer func() {
		said = x.said
		switch fault := recover(); fault.(type) {
		case nil:
		case abort:
			r = reply{outcome: refused}
		default:
			panic(fault)
		}
	}()
	switch c.verb {
	case set:
		r = x.set(c)
	case enqueue:
		r = x.enqueue(c)
	case follow:
		r = x.follow(c)
	case release:
		r = x.release(c)
	case leave:
		r = x.leave(c)
	case check:
		r = x.check(c)
	case extend:
		r = x.extend(c)
	}
	return r, nil
}

func (s *script) give(id ident, marked bool) {
	s.owner, s.marked, s.left = id, marked, leaseTime
}

func (s *script) set(c command) reply {
	s.write(true)
	if s.owner == 0 {
		s.give(c.id, false)
	}
	return reply{owner: s.owner, token: s.now()}
}

func (s *script) follow(c command) reply {
	s.write(true)
	if s.queue[0] == 0 {
		return reply{}
	}
	return reply{code: int8(s.pushBack(c.id))}
}

// grant is that of grant.lua.
func (s *script) grant(caller int8, t token) reply {
	for {
		if s.planted == tellBeforeWrite && s.queue[0] != 0 {
			s.said = append(s.said, message{id: s.queue[0], heard: s.hears[s.queue[0].process()], token: t + 1})
		}
		s.write(false)
		if s.queue[0] == 0 {
			s.free()
			return reply{code: 1}
		}
		id := s.remove(0)
		t++
		s.give(id, s.planted != grantUnmarked)
		if id.process() == caller {
			return reply{told: id, token: t}
		}
		if s.mute {
			if s.planted != forgetRefused {
				s.pushFront(id)
				s.expireQueue()
			}
			s.free()
			return reply{code: 3}
		}
		heard := s.hears[id.process()]
		if s.planted != tellBeforeWrite {
			s.said = append(s.said, message{id: id, heard: heard, token: t})
		}
		if heard || s.planted == grantToNobody {
			return reply{code: 2}
		}
		if s.planted == offeredAgain {
			t--
		}
	}
}

func (s *script) enqueue(c command) reply {
	owner := s.owner
	if owner == c.id && s.planted != takeTwice {
		return reply{told: c.id, token: s.now()}
	}
	if owner == 0 {
		if c.mode == try || s.queue[0] == 0 {
			s.write(true)
			s.give(c.id, false)
			return reply{told: c.id, token: s.now()}
		}
	} else if c.mode == try {
		return reply{left: s.left}
	}
	place := -1
	if c.mode == again {
		place = s.find(c.id)
	}
	if place++; place == 0 {
		s.write(true)
		if c.mode == front {
			s.pushFront(c.id)
			place = s.length()
		} else {
			place = s.pushBack(c.id)
		}
	}
	s.expireQueue()
	if owner == 0 {
		if r := s.grant(c.by, s.now()); r.told != 0 {
			return r
		}
	} else if !s.marked && s.planted != queueUnmarked {
		s.write(true)
		s.marked = true
	}
	return reply{left: s.left, place: int8(place)}
}

func (s *script) release(c command) reply {
	if s.owner != c.id || s.planted == releaseUnmarked && s.marked {
		return reply{}
	}
	if c.entry != 0 {
		s.write(true)
		s.pushBack(c.entry)
	} else if !s.marked || s.planted == releaseUnseen {
		s.write(false)
		s.free()
		return reply{code: 1}
	}
	t := c.token
	if t == 0 {
		t = s.now()
	}
	return s.grant(c.by, t)
}

func (s *script) leave(c command) reply {
	owner, r := s.owner, reply{}
	for _, id := range [...]ident{c.id, c.more[0], c.more[1]} {
		switch {
		case id == 0:
		case owner == id && s.planted != leaveTheQueue && !s.marked:
			s.write(false)
			s.free()
			r, owner = reply{code: 1}, 0
		case owner == id && s.planted != leaveTheQueue:
			if r = s.grant(c.by, s.now()); s.planted != leaveTwice {
				owner = 0
			}
		case !c.alone:
			if i := s.find(id); i >= 0 {
				s.write(false)
				s.remove(i)
			}
		}
	}
	return r
}

func (s *script) check(c command) reply {
	owner, r := s.owner, reply{}
	if s.queue[0] != 0 {
		if owner == 0 {
			if s.planted != keepTheSilent && c.seen != 0 && c.seen.process() != c.by {
				for i := s.length() - 1; i >= 0; i-- {
					if s.queue[i].process() == c.seen.process() {
						s.write(false)
						s.remove(i)
					}
				}
			}
			r = s.grant(c.by, s.now())
			owner = s.owner
		} else if !s.marked {
			s.write(true)
			s.marked = true
		}
		s.expireQueue()
	}
	// What is told has its own token.
	r.owner, r.left, r.place = owner, s.left, int8(s.find(c.id))
	if now := s.now(); r.told == 0 {
		r.token = now
	}
	return r
}

func (s *script) extend(c command) reply {
	if s.owner != c.id {
		return reply{}
	}
	s.write(false)
	if s.left = max(s.left, c.ttl); s.planted == extendShortens {
		s.left = c.ttl
	}
	return reply{code: 1, token: s.now()}
}
