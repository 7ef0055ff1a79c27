package engine

// Observer looks on at every acquisition of a run, for those who check the
// harness itself. Its methods are called by the clients' own goroutines, several
// at a time; what Holding and Releasing take is a part of the hold.
type Observer interface {
	// Holding comes just after the instant from which a client's hold counts.
	Holding(client int)
	// Releasing comes just before the instant up to which it counts.
	Releasing(client int)
	// Acquired comes once the client has released, with what was recorded.
	Acquired(Acquisition)
}

// Acquisition is what is recorded of one. The instants are nanoseconds since the
// run's own beginning.
type Acquisition struct {
	Client, Key int
	Due         int64 // when Acquire should have been called; in a closed loop when it was
	Asked       int64 // Acquire called
	Granted     int64 // Acquire returned
	Released    int64 // Release called
	Done        int64 // Release returned
	// Handoff is the time from the start of the last release until the grant;
	// negative if nobody was waiting then.
	Handoff int64
	Counted bool // in the window's figures
}
