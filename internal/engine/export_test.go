package engine

// Misreading is the job with a clock that is misread at the start of each release.
func (j Job) Misreading(clock func(granted, released int64) int64) Job {
	j.misread = clock
	return j
}
