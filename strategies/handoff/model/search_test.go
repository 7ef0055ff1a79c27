//go:build !race

package model

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// check searches for violations, or only for a given one.
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
	for f := sound + 1; w.flaws != 0 && f <= untold; f++ {
		if w.flaws&(1<<f) != 0 && (only == sound || only == f) {
			return f
		}
	}
	return sound
}

// served reports that no client waits or has the lock any more …
func (w *world) served() bool {
	for _, c := range w.clients {
		if c.phase != idle && c.phase != done {
			return false
		}
	}
	return true
}

// … and settled that it is free, with nothing in transit.
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

// goal is a state that every world must be able to reach by steps of certain classes.
type goal struct {
	flaw  flaw
	steps []class
	holds func(w *world) bool
}

var (
	// In any case no client waits forever.
	everybodyServed = goal{stuck, []class{plain, looks, ticks, mends}, (*world).served}
	// Unless a process has died, no client waits for the end of a lease without a holder.
	nothingLeft = goal{stuckForLease, []class{plain, looks, mends}, (*world).settled}
	// Without a fault no process has to check.
	promptly = goal{stuckForLook, []class{plain}, (*world).settled}
)

// search is the state of a search.
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

// result is the result of a search.
type result struct {
	flaw  flaw
	trace []step // the shortest path to the flaw, or to the world from which a goal is unreachable
	seen  int
	whole bool // all worlds were visited
}

var seed = maphash.MakeSeed()

// find visits every reachable world, the nearest first. It identifies worlds by a hash of 64 bits.
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

// unmet returns the first world from which a goal cannot be reached, -1 if there is none.
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
		case who == nobody:
			fmt.Fprintf(&b, "\n  %s", s.what)
		case who < nobody:
			fmt.Fprintf(&b, "\n  process %d: %s", nobody-1-who, s.what)
		default:
			fmt.Fprintf(&b, "\n  client %d: %s", who, s.what)
		}
	}
	return b.String()
}
