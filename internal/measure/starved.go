package measure

// fairRounds is how many fair rounds a window needs before a client without an acquisition
// counts as starved. A first-come-first-served lock serves every client once in one round.
// The second round allows for a window that opens within a round, and for requests that
// arrive in another order than they were sent.
const fairRounds = 2

// inVain notes the end of a wait without an acquisition. grants is the key's grants so far.
func (w *Waiter) inVain(grants int64) {
	w.meanwhile = grants - w.grants
	w.vain++
}

// rounds is how many times a first-come-first-served lock would have served the waiter while
// it waited: the grants meanwhile ÷ its place in the queue when it arrived.
func (w *Waiter) rounds() float64 { return float64(w.meanwhile) / float64(w.ahead+1) }

// starved counts the clients that waited and had no acquisition in the window, although it
// had room for two fair rounds. With several keys the key that the client waited for needs
// two rounds too, because its queue may have been long by chance. starved is nil if this is
// undecided for some client: it may only not have had its turn yet. Then short is the part
// of the two rounds for which the window had room; 0 if that is unknown.
func (r *Recorder) starved(keys []*Key, waiters []*Waiter) (starved *int, short float64) {
	var turns int64
	for _, c := range r.clients {
		turns += c.granted + c.served
	}
	part := float64(turns) / float64(fairRounds*len(r.clients))
	count, undecided := 0, 0
	short = part
	for i, c := range r.clients {
		if c.granted+c.served > 0 || c.longest == 0 && !c.open { // a client that never waited cannot starve
			continue
		}
		own := part
		// A wait that the client gave up itself was too short for a round.
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

// ShortOfARound says whether the window was too short to decide which clients starve. part is
// the part of two fair rounds for which it had room: below 1, and 0 if that is unknown.
func (r *Recorder) ShortOfARound(keys []*Key, waiters []*Waiter) (part float64, short bool) {
	starved, part := r.starved(keys, waiters)
	return part, starved == nil
}
