//go:build !unix

package measure

import "time"

// processCPU returns 0, because the CPU time is unknown on this system.
func processCPU() time.Duration { return 0 }

// MaxOpenFiles returns 0, which means no limit.
func MaxOpenFiles() (int64, error) { return 0, nil }

// PeakRSS returns 0, because the peak resident memory is unknown on this system.
func PeakRSS() int64 { return 0 }
