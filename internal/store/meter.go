package store

import (
	"maps"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/results"
)

// Meter counts the round trips and bytes on a session's connections to the servers. The traffic of lockbench's own
// observation is counted separately.
type Meter struct {
	Observed netfault.Traffic // of lockbench's own observation

	mu        sync.Mutex
	commands  map[string]int64    // of lockbench's own observation; nil if a store does not count them
	instances []*netfault.Traffic // one per instance, including closed ones
}

// Instance adds an instance, and returns the Traffic that counts the bytes and requests on the instance's connections.
func (m *Meter) Instance() *netfault.Traffic {
	t := new(netfault.Traffic)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.instances = append(m.instances, t)
	return t
}

// Count counts one command of lockbench's own observation.
func (m *Meter) Count(command string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.commands == nil {
		m.commands = map[string]int64{}
	}
	m.commands[command]++
}

// Enter writes the Meter's counts so far into a reading.
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

// Reading returns the sum of the servers' readings, together with the Meter's counts so far. The readings must have
// been taken since began. The time of the sum is the middle between began and now.
func (m *Meter) Reading(began time.Time, nodes []results.NodeReading) results.Reading {
	sum := Sum(nodes)
	if len(nodes) > 1 {
		sum.Nodes = nodes
	}
	sum.At = began.Add(time.Since(began) / 2)
	m.Enter(&sum)
	return sum
}

// RestartCounters adds up the counters of one server over its restarts. Each restart resets the counters in the server.
// While the server is down, RestartCounters keeps the last values.
type RestartCounters struct {
	mu      sync.Mutex
	process string           // ID of the current process
	begun   int64            // restarts; those of a replica do not count
	turned  int64            // role changes
	past    *results.Reading // sum over the earlier processes; nil for the first
	last    *results.Reading // the last reading of the current process
	down    bool
}

// replica is the name by which INFO reports the role of a replica.
const replica = "slave"

// Enter adds a reading of the server. process identifies the server process that the reading comes from.
func (c *RestartCounters) Enter(process string, r results.Reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.last == nil:
	case process != c.process && c.last.Role != replica:
		c.begun++
	case r.Role != c.last.Role && r.Role != "" && c.last.Role != "",
		r.Role != replica && r.History != "" && r.History != c.last.History:
		c.turned++
	}
	if c.last != nil && process != c.process {
		past := c.total()
		past.Clients, past.Memory = 0, 0 // these are current values, not sums
		c.past = &past
	}
	c.process, c.last, c.down = process, &r, false
}

// Miss records that the server does not reply. Until the next Enter, Read returns 0 for figures that are not counters,
// such as the memory.
func (c *RestartCounters) Miss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = true
}

// Read returns the server's counts, summed over all its processes, as of the last reading. It returns false if there
// was no reading.
func (c *RestartCounters) Read() (results.Reading, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		return results.Reading{}, false
	}
	sum := c.total()
	if c.down {
		sum.Clients, sum.Memory = 0, 0
	}
	return sum, true
}

func (c *RestartCounters) total() results.Reading {
	sum := *c.last
	if c.past != nil {
		sum = c.past.Plus(sum)
	}
	sum.Restarts, sum.RoleChanges = c.begun, c.turned
	return sum
}

// Process returns the ID of the process that the last reading came from.
func (c *RestartCounters) Process() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process
}

// Sum adds up the readings of several servers. A figure that one of the servers does not report is missing from the
// sum.
func Sum(nodes []results.NodeReading) results.Reading {
	var sum results.Reading
	for i, node := range nodes {
		if i == 0 {
			sum = node.Reading
		} else {
			sum = sum.Plus(node.Reading)
		}
	}
	return sum
}
