//go:build !race

package model

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// check returns the first flaw of the world, or sound if it has none. If only is not sound, check ignores all other
// flaws.
func (w *world) check(only flaw) flaw {
	holders := 0
	for _, c := range w.clients {
		if c.phase == holding && c.lease.until > 0 && w.excluded&(1<<c.lease.id) == 0 {
			holders++
		}
	}
	if holders > 1 {
		w.found(twoOwners)
	}
	for f := sound + 1; w.flaws != 0 && f <= unnotifiedWaiter; f++ {
		if w.flaws&(1<<f) != 0 && (only == sound || only == f) {
			return f
		}
	}
	return sound
}

// served reports whether no client requests, holds or is releasing the lock.
func (w *world) served() bool {
	for _, c := range w.clients {
		if c.phase != idle && c.phase != done {
			return false
		}
	}
	return true
}

// settled reports whether all clients are served, the lock is free, and Redis has replied to all pending releases.
func (w *world) settled() bool {
	for _, q := range w.procs {
		for _, d := range q.pendingReleases {
			if d.id != 0 && !d.answered {
				return false
			}
		}
	}
	return w.served() && w.owner == 0
}

// goal is a condition that every world must be able to meet by steps of the given classes. If a world cannot meet it,
// the search reports the given flaw.
type goal struct {
	flaw  flaw
	steps []class
	holds func(w *world) bool
}

var (
	// Whatever the fault, every client is served eventually, at the latest after leases have expired.
	everybodyServed = goal{stuck, []class{plain, looks, ticks, mends}, (*world).served}
	// Unless a process has died, every client is served and the lock becomes free. This must not require that a lease
	// without a holder expires.
	nothingLeft = goal{stuckForLease, []class{plain, looks, mends}, (*world).settled}
	// Without a fault, every client is served even if no process runs a check.
	promptly = goal{stuckForLook, []class{plain}, (*world).settled}
)

// search visits the worlds that a protocol can reach. The first four fields are its parameters, and the others hold its
// progress.
type search struct {
	protocol *protocol
	limit    int // worlds
	goals    []goal
	only     flaw // the flaw that is searched for; sound for all

	seen   map[uint64]int32
	parent []int32
	by     []step
	edges  []edge
	met    [][]bool // by goal, by world
}

type edge struct {
	from, to int32
	class    class
}

// result is what a search found: the first flaw and the path to it, or sound.
type result struct {
	flaw  flaw
	trace []step // the shortest path to the flaw, or to the world from which a goal is unreachable
	seen  int
	whole bool // all worlds were visited
}

var seed = maphash.MakeSeed()

// find visits the reachable worlds, those that need the fewest steps first, until it finds a flaw or has visited limit
// worlds. If it has visited all reachable worlds, it also checks the goals. It identifies worlds by a hash of 64 bits.
func (s *search) find(f budget) result {
	first := start(f)
	s.seen = map[uint64]int32{}
	s.met = make([][]bool, len(s.goals))
	s.add(&first, maphash.Comparable(seed, first), 0, step{})
	todo, later := []world{first}, []world(nil)
	numbers, laterNumbers := []int32{0}, []int32(nil)
	for len(todo) > 0 {
		for i := range todo {
			from := numbers[i]
			s.protocol.next(&todo[i], func(n *world, by step) {
				if n.full { // its successors are unknown, so it proves nothing
					for g := range s.met {
						s.met[g][from] = true
					}
					return
				}
				n.tidy()
				hash := maphash.Comparable(seed, *n)
				to, known := s.seen[hash]
				if !known {
					to = s.add(n, hash, from, by)
					later, laterNumbers = append(later, *n), append(laterNumbers, to)
				}
				if by.class != harms && by.class != wills {
					s.edges = append(s.edges, edge{from, to, by.class})
				}
			})
		}
		for i := range later {
			if flaw := later[i].check(s.only); flaw != sound {
				return result{flaw, s.way(laterNumbers[i]), len(s.by), false}
			}
		}
		if len(s.by) > s.limit {
			return result{sound, nil, len(s.by), false}
		}
		todo, later = later, todo[:0]
		numbers, laterNumbers = laterNumbers, numbers[:0]
	}
	for g := range s.goals {
		if at := s.unmet(g); at >= 0 {
			return result{s.goals[g].flaw, s.way(at), len(s.by), true}
		}
	}
	return result{sound, nil, len(s.by), true}
}

func (s *search) add(w *world, hash uint64, from int32, by step) int32 {
	number := int32(len(s.by))
	s.seen[hash] = number
	s.parent, s.by = append(s.parent, from), append(s.by, by)
	for g := range s.goals {
		s.met[g] = append(s.met[g], s.goals[g].holds(w))
	}
	return number
}

// unmet returns the number of the first world from which goal g cannot be reached. It returns -1 if g can be reached
// from all worlds.
func (s *search) unmet(g int) int32 {
	from := make([][]int32, len(s.by))
	for _, e := range s.edges {
		if slices.Contains(s.goals[g].steps, e.class) {
			from[e.to] = append(from[e.to], e.from)
		}
	}
	reached := slices.Clone(s.met[g])
	var todo []int32
	for i, yes := range reached {
		if yes {
			todo = append(todo, int32(i))
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, i := range from[at] {
			if !reached[i] {
				reached[i] = true
				todo = append(todo, i)
			}
		}
	}
	return int32(slices.Index(reached, false))
}

func (s *search) way(to int32) (steps []step) {
	for ; to != 0; to = s.parent[to] {
		steps = append([]step{s.by[to]}, steps...)
	}
	return steps
}

func (r result) String() string {
	if r.flaw == sound {
		return fmt.Sprintf("%d worlds", r.seen)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v, after %d steps (%d worlds):", r.flaw, len(r.trace), r.seen)
	for _, s := range r.trace {
		switch who := int(s.who); {
		case who == theServer:
			fmt.Fprintf(&b, "\n  %s", s.what)
		case who < theServer:
			fmt.Fprintf(&b, "\n  process %d: %s", theServer-1-who, s.what)
		default:
			fmt.Fprintf(&b, "\n  client %d: %s", who, s.what)
		}
	}
	return b.String()
}
