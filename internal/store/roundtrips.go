package store

import (
	"slices"
	"time"
)

// RoundTrips are percentiles of the time that a command takes, in nanoseconds; nil where
// they are not known.
type RoundTrips struct {
	PingP50, PingP99     *int64 // of the least command
	ScriptP50, ScriptP99 *int64 // of the least script, or write
}

// timings is enough for a median, and few enough not to show beside a run.
const timings = 300

// TimeCommand has a command sent again and again, one after the other, and returns
// percentiles of the times that it takes, in nanoseconds, or the command's error.
func TimeCommand(send func() error) (p50, p99 *int64, err error) {
	times := make([]int64, 0, timings)
	for range timings {
		start := time.Now()
		if err := send(); err != nil {
			return nil, nil, err
		}
		times = append(times, int64(time.Since(start)))
	}
	slices.Sort(times)
	return &times[len(times)/2], &times[len(times)*99/100], nil
}
