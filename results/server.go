package results

// Server is what Redis itself counted for a run; nil if it did not report it.
type Server struct {
	Whole  *ServerDelta `json:"whole_run" merge:"-"` // connections opened → keys cleaned up
	Window *ServerDelta `json:"window"`
	Peak   *ServerPeak  `json:"peak"`
}

// ServerDelta is the difference of two readings of INFO.
type ServerDelta struct {
	Seconds float64 `json:"seconds" merge:"mean"` // between the readings
	// Acquisitions is the number of leases granted between the readings, the divisor of the
	// figures. It differs from the window's by what was granted while INFO was under way.
	Acquisitions int64 `json:"acquisitions" merge:"sum"`

	Calls    *int64           `json:"calls" merge:"mean"`    // commands executed, including those inside scripts
	Commands map[string]int64 `json:"commands" merge:"mean"` // the same by command, as in INFO commandstats
	BytesIn  *int64           `json:"bytes_in" merge:"mean"` // received by Redis
	BytesOut *int64           `json:"bytes_out" merge:"mean"`
	CPU      *float64         `json:"cpu_seconds" merge:"mean"`             // used_cpu_user + used_cpu_sys
	MainCPU  *float64         `json:"main_thread_cpu_seconds" merge:"mean"` // of the thread that executes commands
	IdleCPU  *float64         `json:"idle_cpu_seconds" merge:"max"`         // estimate of CPU if the same connections had been idle
	// IOThreads is the largest number of a node's I/O threads, including the main one; 0 if not
	// known. Above 1, idle threads wait for work in a busy loop, so the CPU of the connections
	// alone cannot be measured: then there is no IdleCPU.
	IOThreads int   `json:"io_threads,omitempty" merge:"max"`
	Evictions int64 `json:"evicted_keys,omitempty" merge:"max"`
	// BusPublished is the number of messages that PUBLISH and SPUBLISH made on the cluster bus
	// between the nodes. Each is more than 2 KB larger than what was published. nil without a
	// cluster.
	BusPublished *int64 `json:"bus_published,omitempty" merge:"mean"`
	// BusReceived is the number of bytes that the nodes of a cluster received from each other on
	// the bus, including gossip, as Linux counts them at the sockets. nil if the sockets cannot
	// be seen, such as in a container with a network of its own.
	BusReceived *int64 `json:"bus_bytes_received,omitempty" merge:"mean"`
	// WALBytes is the number of bytes added to the write-ahead log; nil if not known.
	WALBytes *int64 `json:"wal_bytes,omitempty" merge:"mean"`

	// RoundTrips and the client bytes are counted at the generator's sockets.
	RoundTrips     *int64 `json:"round_trips" merge:"sum"` // requests written; a pipeline counts once
	ClientBytesOut *int64 `json:"client_bytes_out" merge:"sum"`
	ClientBytesIn  *int64 `json:"client_bytes_in" merge:"sum"`
	// OtherTraffic is the share, in percent, of the bytes received by Redis that did not come from
	// this generator. It is only known for intervals that begin and end without traffic.
	OtherTraffic *float64 `json:"foreign_percent" merge:"-"`

	Nodes []NodeDelta `json:"nodes,omitempty"` // the nodes, if there are several
}

// NodeDelta is what one node counted. A replica counts the commands and bytes from its
// primary. The traffic between the nodes of a cluster is only in BusPublished and
// BusReceived.
type NodeDelta struct {
	Address  string           `json:"address" merge:"key"`
	Role     string           `json:"role,omitempty" merge:"first"` // primary or replica, at the end
	Calls    *int64           `json:"calls" merge:"mean"`
	Commands map[string]int64 `json:"commands" merge:"mean"`
	BytesIn  *int64           `json:"bytes_in" merge:"mean"`
	BytesOut *int64           `json:"bytes_out" merge:"mean"`
	CPU      *float64         `json:"cpu_seconds" merge:"mean"`
	MainCPU  *float64         `json:"main_thread_cpu_seconds,omitempty" merge:"mean"` // as in ServerDelta

	BusPublished *int64 `json:"bus_published,omitempty" merge:"mean"`      // sent by this node, as in ServerDelta
	BusReceived  *int64 `json:"bus_bytes_received,omitempty" merge:"mean"` // by this node, as in ServerDelta
}

// ServerPeak is the largest values in the window, sampled about once a second.
type ServerPeak struct {
	Clients       *int64 `json:"clients" merge:"max"`       // connections
	Subscriptions *int64 `json:"subscriptions" merge:"max"` // channel subscriptions over all connections
	MemoryBytes   *int64 `json:"memory_bytes" merge:"max"`  // used_memory
}

// Raise raises the peaks to later values; 0 means not known.
func (p *ServerPeak) Raise(clients, memory int64, subscriptions *int64) {
	p.Clients = higher(p.Clients, told(clients))
	p.MemoryBytes = higher(p.MemoryBytes, told(memory))
	p.Subscriptions = higher(p.Subscriptions, subscriptions)
}

// told returns nil for 0, which means not known.
func told(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// higher returns the larger known value.
func higher(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// PerAcquisition divides a total by the acquisitions of the same interval; nil without
// acquisitions or without a total.
func (d *ServerDelta) PerAcquisition(total *int64) *float64 {
	if d == nil || total == nil || d.Acquisitions == 0 {
		return nil
	}
	return new(float64(*total) / float64(d.Acquisitions))
}

// threaded says whether threads besides the main one do I/O.
func (d *ServerDelta) threaded() bool { return d != nil && d.IOThreads > 1 }

// MainPerAcquisition is the CPU of the thread that executes commands, per acquisition in
// seconds, and RestPerAcquisition the CPU of all other threads. Nothing is subtracted. Both
// are nil without I/O threads; then CPUPerAcquisition is the figure.
func (d *ServerDelta) MainPerAcquisition() *float64 {
	if !d.threaded() || d.MainCPU == nil || d.Acquisitions == 0 {
		return nil
	}
	return new(*d.MainCPU / float64(d.Acquisitions))
}

// RestPerAcquisition is described at MainPerAcquisition.
func (d *ServerDelta) RestPerAcquisition() *float64 {
	if !d.threaded() || d.CPU == nil || d.MainCPU == nil || d.Acquisitions == 0 {
		return nil
	}
	return new(max(0, *d.CPU-*d.MainCPU) / float64(d.Acquisitions))
}

// CPUPerAcquisition is the servers' CPU per acquisition in seconds, less IdleCPU; nil with I/O
// threads, see IOThreads.
func (d *ServerDelta) CPUPerAcquisition() *float64 {
	if d == nil || d.CPU == nil || d.Acquisitions == 0 || d.threaded() {
		return nil
	}
	cpu := *d.CPU
	if d.IdleCPU != nil {
		cpu -= *d.IdleCPU
	}
	if cpu <= 0 { // too small to measure
		return nil
	}
	return new(cpu / float64(d.Acquisitions))
}

// CPUPercent is the servers' CPU in percent of one core; nil where unknown.
func (d *ServerDelta) CPUPercent() *float64 {
	if d == nil || d.CPU == nil || d.Seconds <= 0 {
		return nil
	}
	return new(*d.CPU / d.Seconds * 100)
}

// MainThreadPercent is how busy the thread that executes commands was, in percent of its core; of several
// nodes, the busiest one. nil if not known.
func (d *ServerDelta) MainThreadPercent() *float64 {
	if d == nil || d.Seconds <= 0 {
		return nil
	}
	busiest := d.MainCPU
	if len(d.Nodes) > 0 {
		busiest = nil
	}
	for _, n := range d.Nodes {
		if n.MainCPU != nil && (busiest == nil || *n.MainCPU > *busiest) {
			busiest = n.MainCPU
		}
	}
	if busiest == nil {
		return nil
	}
	return new(*busiest / d.Seconds * 100)
}
