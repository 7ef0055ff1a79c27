package engine

import (
	"fmt"
	"time"

	"github.com/lockbench/lockbench/results"
)

// outlived is the label of a run in which somebody held for longer than a lease that
// nobody renews: "" if nobody did. The exclusion that is claimed ends with the lease, so
// that it can be kept while several work on what the lock protects.
func (r *run) outlived(s results.Speed) string {
	longest := s.Hold.Max
	if r.info.Claims.Watchdog || r.info.Nodes == 0 || longest == nil || longest.NS <= int64(r.Workload.TTL) {
		return ""
	}
	return fmt.Sprintf("%s: %v for a TTL of %v", results.OutlivedLease, time.Duration(longest.NS).Round(time.Millisecond), r.Workload.TTL)
}
