package selfcheck

import (
	"testing"
	"testing/synctest"

	"github.com/lockbench/lockbench/internal/testkit/virtual"
	"github.com/lockbench/lockbench/workloads"
)

// In virtual time nothing costs any time but the holds and the gaps between
// arrivals, so that what must come out is known exactly.
func TestInVirtualTimeEveryWaitIsLindleys(t *testing.T) {
	for load, hold := range map[float64]string{0.5: "exp:1ms", 0.7: "uniform:0s,2ms", 0.9: "1ms"} {
		synctest.Test(t, func(t *testing.T) {
			seen := &records{}
			run := virtual.Run(t, seen, func(w *workloads.Spec) {
				w.Hold, w.Rate, w.Iterations = virtual.Dist(t, hold), workloads.Rate(load*1000), 3000
			})
			p := lindley(seen.counted())
			if p.customers != 3000 || int64(p.customers) != run.Speed.Acquisitions {
				t.Errorf("at %v: %d customers seen, %d reported", load, p.customers, run.Speed.Acquisitions)
			}
			if p.predicted == 0 || p.recorded != p.predicted || p.overtook > 0 {
				t.Errorf("at %v: waits of %v ns in all, predicted %v, %d overtook", load, p.recorded, p.predicted, p.overtook)
			}
			if got := *run.Waiting.PerAcquisition.MeanNS * float64(p.customers); got < p.predicted*0.999999 || got > p.predicted*1.000001 {
				t.Errorf("at %v: the report's waits come to %v ns, predicted %v", load, got, p.predicted)
			}
		})
	}
}
