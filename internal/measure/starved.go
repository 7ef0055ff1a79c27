package measure

// fairRounds are how many times every client must have been able to have its turn before
// one without any is said to starve. In one round a first-come-first-served lock serves
// everybody once; the other makes up for a window that opens within a round, and for
// requests that cross on their way.
const fairRounds = 2

// inVain notes the end of a wait without an acquisition, when so many were granted in all.
func (w *Waiter) inVain(grants int64) {
	w.meanwhile = grants - w.grants
	w.vain++
}

// rounds are how many times a first-come-first-served lock would have come to the waiter
// while it waited: the grants meanwhile ÷ its place in the queue when it came.
func (w *Waiter) rounds() float64 { return float64(w.meanwhile) / float64(w.ahead+1) }

// starved counts the clients that waited and had no acquisition in the window although there
// were two for each: acquisitions enough for all, and where there are several keys also of
// the key that it waited for, on which the queue may have been long by chance. It is nil if
// there are clients without an acquisition of which this cannot be said, since their turn may only
// have been to come; then short is what part of the two rounds the window had room for, 0
// if that is not known.
func (r *Recorder) starved(keys []*Key, waiters []*Waiter) (starved *int, short float64) {
	var turns int64
	for _, c := range r.clients {
		turns += c.granted + c.served
	}
	part := float64(turns) / float64(fairRounds*len(r.clients))
	count, undecided := 0, 0
	short = part
	for i, c := range r.clients {
		if c.granted+c.served > 0 || c.longest == 0 && !c.open { // who never waited cannot starve
			continue
		}
		own := part
		// Waits that it gave up itself had no time for a round.
		if len(keys) > 1 && i < len(waiters) && waiters[i].vain == 1 {
			own = min(own, waiters[i].rounds()/fairRounds)
		}
		if own >= 1 {
			count++
			continue
		}
		undecided++
		short = min(short, own)
	}
	if undecided > 0 {
		return nil, short
	}
	return &count, 0
}

// ShortOfARound is what part of two fair rounds the window had room for, where for that
// reason it cannot be told who starves: below 1, and 0 where not even that is known. It
// is false where it can be told.
func (r *Recorder) ShortOfARound(keys []*Key, waiters []*Waiter) (part float64, short bool) {
	starved, part := r.starved(keys, waiters)
	return part, starved == nil
}
