package results

import "fmt"

// durations is a distribution under the name by which thresholds know it.
type durations struct {
	name string
	noun string // of those whose 99th percentile every table has
	of   func(Run) Distribution
}

func distributions() []durations {
	return []durations{
		{"handoff", "handoffs", handoffs},
		{"hold", "", holds},
		{"release", "", releases},
		{"service", "", func(r Run) Distribution { return r.Waiting.Service }},
		{"wait", "waits", waits},
		{"wait_per_client", "", waitsPerClient},
	}
}

func waits(r Run) Distribution          { return r.Waiting.PerAcquisition }
func waitsPerClient(r Run) Distribution { return r.Waiting.PerClient }
func handoffs(r Run) Distribution       { return r.Speed.Handoff }
func releases(r Run) Distribution       { return r.Speed.Release }
func holds(r Run) Distribution          { return r.Speed.Hold }
func lateness(r Run) Distribution       { return r.Waiting.Lateness }

// TooFew says of which durations a run had so few that tables have no 99th percentile,
// which would be no more than their maximum: "12 handoffs".
func (s Summary) TooFew() []string {
	var few []string
	for _, kind := range distributions() {
		for _, run := range s.Used {
			if d := kind.of(run); kind.noun != "" && d.samples() > 0 && !d.enough(99) {
				few = append(few, fmt.Sprintf("%d %s", d.samples(), kind.noun))
				break
			}
		}
	}
	return few
}
