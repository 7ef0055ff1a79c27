package store

import (
	"maps"
	"sync"

	"github.com/lockbench/lockbench/internal/intercept"
	"github.com/lockbench/lockbench/results"
)

// Meter counts what the connections of a session exchange with the servers: the clients', and
// separately those of our own observation.
type Meter struct {
	Observed intercept.Traffic // by our own observation

	mu        sync.Mutex
	commands  map[string]int64     // of our own observation; nil if a store does not count them
	instances []*intercept.Traffic // one for each instance, including closed ones
}

// Instance returns the traffic of one more instance.
func (m *Meter) Instance() *intercept.Traffic {
	t := new(intercept.Traffic)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.instances = append(m.instances, t)
	return t
}

// Count counts a command of our own observation.
func (m *Meter) Count(command string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.commands == nil {
		m.commands = map[string]int64{}
	}
	m.commands[command]++
}

// Enter enters the counts so far into a reading.
func (m *Meter) Enter(r *results.Reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Observer = results.ObserverCounts{
		Commands:   maps.Clone(m.commands),
		RoundTrips: m.Observed.Requests(), BytesOut: m.Observed.Written(), BytesIn: m.Observed.Read(),
	}
	r.RoundTrips, r.ClientBytesOut, r.ClientBytesIn = r.Observer.RoundTrips, r.Observer.BytesOut, r.Observer.BytesIn
	for _, t := range m.instances {
		r.RoundTrips += t.Requests()
		r.ClientBytesOut += t.Written()
		r.ClientBytesIn += t.Read()
	}
}
