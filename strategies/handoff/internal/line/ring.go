package line

// ring is a queue of the calls whose answers are awaited.
type ring struct {
	calls   []Call // a power of two
	head, n int
}

func (r *ring) push(call Call) {
	if r.n == len(r.calls) {
		grown := make([]Call, max(16, 2*len(r.calls)))
		for i := range r.n {
			grown[i] = r.calls[(r.head+i)%len(r.calls)]
		}
		r.calls, r.head = grown, 0
	}
	r.calls[(r.head+r.n)&(len(r.calls)-1)] = call
	r.n++
}

// pop removes the first.
func (r *ring) pop() Call {
	if r.n == 0 {
		return nil
	}
	call := r.calls[r.head]
	r.calls[r.head] = nil
	r.head = (r.head + 1) & (len(r.calls) - 1)
	r.n--
	return call
}
