package engine

// Observer sees every acquisition of a run, for checks of the harness itself. The clients'
// goroutines call its methods concurrently; the time in Holding and Releasing is part of
// the hold.
type Observer interface {
	// Holding is called just after the instant from which a client's hold counts.
	Holding(client int)
	// Releasing is called just before the instant up to which it counts.
	Releasing(client int)
	// Acquired is called after the release, with what was recorded.
	Acquired(Acquisition)
}

// Acquisition is the record of one acquisition. The instants are nanoseconds since the
// beginning of the run.
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
	Counted bool // it is in the window's figures
}
