//go:build !unix

package measure

import "time"

// processCPU is unknown here.
func processCPU() time.Duration { return 0 }

// PeakRSS is unknown here.
func PeakRSS() int64 { return 0 }
