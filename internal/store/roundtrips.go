package store

import (
	"fmt"
	"slices"
	"time"
)

// RoundTrips holds percentiles of the time of a command, in nanoseconds; nil if not known.
type RoundTrips struct {
	PingP50, PingP99     *int64 // of the smallest command
	ScriptP50, ScriptP99 *int64 // of the smallest script or write
}

// timings is the number of samples: enough for a median, and a negligible part of a run.
const timings = 300

// TimeCommand sends a command repeatedly, one after the other, and returns percentiles of its
// times in nanoseconds; nil if the server refuses it, see Protocol.Refused.
func TimeCommand(refused func(error) string, send func() error) (p50, p99 *int64, err error) {
	times := make([]int64, 0, timings)
	for range timings {
		start := time.Now()
		if err := send(); err != nil {
			if refused(err) != "" {
				return nil, nil, nil
			}
			return nil, nil, fmt.Errorf("measure the round trip: %w", err)
		}
		times = append(times, int64(time.Since(start)))
	}
	slices.Sort(times)
	return &times[len(times)/2], &times[len(times)*99/100], nil
}
