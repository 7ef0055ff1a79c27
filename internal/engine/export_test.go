package engine

// Misreading returns the job with a function that replaces the clock's reading at the start of each release, so that a
// test can plant wrong readings.
func (j Job) Misreading(clock func(granted, released int64) int64) Job {
	j.misread = clock
	return j
}
