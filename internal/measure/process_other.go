//go:build !unix

package measure

import "time"

// processCPU is unknown here.
func processCPU() time.Duration { return 0 }

// MaxOpenFiles is not limited here.
func MaxOpenFiles() (int64, error) { return 0, nil }

// PeakRSS is unknown here.
func PeakRSS() int64 { return 0 }
