package engine

import (
	"fmt"
	"time"

	"github.com/lockbench/lockbench/results"
)

// outlived returns a label if some client held its lock for longer than the TTL of a lease
// that nothing renews; else "". The lock claims exclusion only while the lease is valid, so
// the claim can be kept while several clients work on what the lock protects.
func (r *run) outlived(s results.Speed) string {
	longest := s.Hold.Max
	if r.info.Claims.Watchdog || r.info.Nodes == 0 || longest == nil || longest.NS <= int64(r.Workload.TTL) {
		return ""
	}
	return fmt.Sprintf("%s: %v for a TTL of %v", results.OutlivedLease, time.Duration(longest.NS).Round(time.Millisecond), r.Workload.TTL)
}
