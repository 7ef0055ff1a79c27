package results

import "testing"

// The CPU of the generator is told of acquisitions, and not where there were none.
func TestClientCPUPerAcquisition(t *testing.T) {
	metric, known := FindMetric("client_cpu_per_acq")
	if !known {
		t.Fatal("there is no such metric")
	}
	var run Run
	run.Generator.CPUSeconds = 1.5
	if f := metric.Of(run); f != nil {
		t.Errorf("without an acquisition it is %v", f.Value)
	}
	run.Speed.Acquisitions = 1000
	if f := metric.Of(run); f == nil || f.Value != 1.5e6 {
		t.Errorf("1.5 s for 1,000 acquisitions are %+v", f)
	}
	run.Generator.CPUSeconds = 0 // the system does not tell
	if f := metric.Of(run); f != nil {
		t.Errorf("without a figure of the system it is %v", f.Value)
	}
}
