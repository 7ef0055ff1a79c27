package results

// Server is what Redis itself counted for a run, nil where it would not say.
type Server struct {
	Whole  *ServerDelta `json:"whole_run" merge:"-"` // connections opened → keys cleaned up
	Window *ServerDelta `json:"window"`
	Peak   *ServerPeak  `json:"peak"`
}

// ServerDelta is the difference of two readings of INFO.
type ServerDelta struct {
	Seconds float64 `json:"seconds" merge:"mean"` // between the readings
	// Acquisitions granted between the readings, to divide by. They differ from
	// the window's by what was granted while INFO travelled.
	Acquisitions int64 `json:"acquisitions" merge:"sum"`

	Calls    *int64           `json:"calls" merge:"mean"`    // commands executed, those inside scripts included
	Commands map[string]int64 `json:"commands" merge:"mean"` // the same by command, as in INFO commandstats
	BytesIn  *int64           `json:"bytes_in" merge:"mean"` // received by Redis
	BytesOut *int64           `json:"bytes_out" merge:"mean"`
	CPU      *float64         `json:"cpu_seconds" merge:"mean"`             // used_cpu_user + used_cpu_sys
	MainCPU  *float64         `json:"main_thread_cpu_seconds" merge:"mean"` // of the thread that executes commands
	IdleCPU  *float64         `json:"idle_cpu_seconds" merge:"max"`         // what CPU would have been with the same connections idle
	// IOThreads is the most that a node has, the main one included; 0 where that is not
	// told. Over 1, idle threads wait for work by running, so that no part of CPU is that
	// of the connections alone: there is no IdleCPU then.
	IOThreads int   `json:"io_threads,omitempty" merge:"max"`
	Evictions int64 `json:"evicted_keys,omitempty" merge:"max"`
	// BusPublished are the messages from node to node of a cluster that PUBLISH and
	// SPUBLISH made, over the cluster bus, where each is larger by over 2 KB than what
	// was published; nil on no cluster.
	BusPublished *int64 `json:"bus_published,omitempty" merge:"mean"`
	// BusReceived are the bytes that the nodes of a cluster received from each other
	// over the bus, the gossip that keeps them together included, as Linux counts
	// them at the sockets; nil where those are not to be seen, as in a container with
	// a network of its own.
	BusReceived *int64 `json:"bus_bytes_received,omitempty" merge:"mean"`
	// WALBytes are what the server added to its write-ahead log; nil where it does not tell.
	WALBytes *int64 `json:"wal_bytes,omitempty" merge:"mean"`

	// RoundTrips and the client's bytes are counted at the generator's sockets.
	RoundTrips     *int64 `json:"round_trips" merge:"sum"` // requests written, a pipeline being one
	ClientBytesOut *int64 `json:"client_bytes_out" merge:"sum"`
	ClientBytesIn  *int64 `json:"client_bytes_in" merge:"sum"`
	// OtherTraffic is the share, in percent, of the bytes Redis received that did not
	// come from this generator; only for intervals that begin and end in silence.
	OtherTraffic *float64 `json:"foreign_percent" merge:"-"`

	Nodes []NodeDelta `json:"nodes,omitempty"` // one by one, if there are several
}

// NodeDelta is what one node counted. Replicas count the commands and bytes that
// their primary passes on to them; what the nodes of a cluster say to each other
// is not among them, but for BusPublished and BusReceived.
type NodeDelta struct {
	Address  string           `json:"address" merge:"key"`
	Role     string           `json:"role,omitempty" merge:"first"` // primary or replica, at the end
	Calls    *int64           `json:"calls" merge:"mean"`
	Commands map[string]int64 `json:"commands" merge:"mean"`
	BytesIn  *int64           `json:"bytes_in" merge:"mean"`
	BytesOut *int64           `json:"bytes_out" merge:"mean"`
	CPU      *float64         `json:"cpu_seconds" merge:"mean"`

	BusPublished *int64 `json:"bus_published,omitempty" merge:"mean"`      // sent by it, as in ServerDelta
	BusReceived  *int64 `json:"bus_bytes_received,omitempty" merge:"mean"` // by it, as in ServerDelta
}

// ServerPeak is the largest seen in the window, sampled about once a second.
type ServerPeak struct {
	Clients       *int64 `json:"clients" merge:"max"`       // connections
	Subscriptions *int64 `json:"subscriptions" merge:"max"` // channel subscriptions over all connections
	MemoryBytes   *int64 `json:"memory_bytes" merge:"max"`  // used_memory
}

// Raise enters what was seen later; 0 is what the server does not tell.
func (p *ServerPeak) Raise(clients, memory int64, subscriptions *int64) {
	p.Clients = higher(p.Clients, told(clients))
	p.MemoryBytes = higher(p.MemoryBytes, told(memory))
	p.Subscriptions = higher(p.Subscriptions, subscriptions)
}

// told is a count that is never 0 where it is told.
func told(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// higher is the larger of what is known.
func higher(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// PerAcquisition divides by the acquisitions of the same interval; nil without
// any, or without the figure.
func (d *ServerDelta) PerAcquisition(total *int64) *float64 {
	if d == nil || total == nil || d.Acquisitions == 0 {
		return nil
	}
	per := float64(*total) / float64(d.Acquisitions)
	return &per
}

// threaded says that other threads than the main one do input and output.
func (d *ServerDelta) threaded() bool { return d != nil && d.IOThreads > 1 }

// MainPerAcquisition is the CPU of the thread that executes commands, per acquisition in
// seconds, and RestPerAcquisition that of all others. Nothing is subtracted. Both are nil
// without I/O threads, where CPUPerAcquisition is the figure.
func (d *ServerDelta) MainPerAcquisition() *float64 {
	if !d.threaded() || d.MainCPU == nil || d.Acquisitions == 0 {
		return nil
	}
	return new(*d.MainCPU / float64(d.Acquisitions))
}

// RestPerAcquisition is described with MainPerAcquisition.
func (d *ServerDelta) RestPerAcquisition() *float64 {
	if !d.threaded() || d.CPU == nil || d.MainCPU == nil || d.Acquisitions == 0 {
		return nil
	}
	return new(max(0, *d.CPU-*d.MainCPU) / float64(d.Acquisitions))
}

// CPUPerAcquisition is the servers' CPU per acquisition in seconds, less what the same
// connections cost idle; nil with I/O threads, see IOThreads.
func (d *ServerDelta) CPUPerAcquisition() *float64 {
	if d == nil || d.CPU == nil || d.Acquisitions == 0 || d.threaded() {
		return nil
	}
	cpu := *d.CPU
	if d.IdleCPU != nil {
		cpu -= *d.IdleCPU
	}
	if cpu <= 0 { // less than what can be told apart
		return nil
	}
	per := cpu / float64(d.Acquisitions)
	return &per
}

// CPUPercent is the servers' CPU in percent of one core; nil where unknown.
func (d *ServerDelta) CPUPercent() *float64 {
	if d == nil || d.CPU == nil || d.Seconds <= 0 {
		return nil
	}
	percent := *d.CPU / d.Seconds * 100
	return &percent
}
