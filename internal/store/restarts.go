package store

import (
	"sync"

	"github.com/lockbench/lockbench/results"
)

// RestartCounters continues a server's counters over its restarts, at which it resets them, and
// while it is down.
type RestartCounters struct {
	mu      sync.Mutex
	process string           // ID of the current process
	past    *results.Reading // sum over the earlier processes; nil for the first
	last    *results.Reading // the last reading of the current process
	down    bool
}

// Enter adds a reading of a process.
func (c *RestartCounters) Enter(process string, r results.Reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && process != c.process {
		past := c.total()
		past.Clients, past.Memory = 0, 0 // values of a past instant
		c.past = &past
	}
	c.process, c.last, c.down = process, &r, false
}

// Miss notes that the server does not answer.
func (c *RestartCounters) Miss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = true
}

// Read returns the server's counts over all its processes at its last answer; false if it never
// answered.
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
	if c.past == nil {
		return *c.last
	}
	return c.past.Plus(*c.last)
}

// Process returns the process of the last reading.
func (c *RestartCounters) Process() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process
}

// Sum adds up the readings of several servers.
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
