package results

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/words"
)

// Server holds what the servers counted for a run. A field is nil if the servers did not report it.
type Server struct {
	Whole  *ServerDelta `json:"whole_run" add:"none"` // connections opened → keys cleaned up
	Window *ServerDelta `json:"window"`
	Peak   *ServerPeak  `json:"peak" add:"known"`
}

// ServerDelta is the increase of the servers' counters between two readings of INFO.
type ServerDelta struct {
	Seconds float64 `json:"seconds"` // between the readings
	// Acquisitions is the number of leases granted between the readings. Figures per acquisition are divided by it. It
	// differs from the count in the window by the leases granted during the INFO requests.
	Acquisitions int64 `json:"acquisitions" add:"sum"`

	Calls    *int64           `json:"calls"`    // commands executed, including those inside scripts
	Commands map[string]int64 `json:"commands"` // calls by command, as in INFO commandstats
	BytesIn  *int64           `json:"bytes_in"` // received by Redis
	BytesOut *int64           `json:"bytes_out"`
	CPU      *float64         `json:"cpu_seconds"`             // used_cpu_user + used_cpu_sys
	MainCPU  *float64         `json:"main_thread_cpu_seconds"` // of the thread that executes commands
	// IdleCPU estimates the CPU time, in seconds, that the servers would have used if the same connections had been idle.
	IdleCPU *float64 `json:"idle_cpu_seconds" add:"max"`
	// IOThreads is the number of I/O threads, including the main thread, of the node with the most; 0 if not known. If it
	// is above 1, idle threads wait for work in a busy loop. Their CPU time cannot be separated from that of the
	// connections, so IdleCPU is nil.
	IOThreads int `json:"io_threads,omitempty"`
	// Evictions is the number of keys that the servers evicted for lack of memory.
	Evictions int64 `json:"evicted_keys,omitempty"`
	// Restarts counts how often a server other than a replica was restarted or replaced: a reading of INFO found a
	// different process from the previous reading.
	Restarts int64 `json:"restarts,omitempty"`
	// RoleChanges counts how often a reading found that a primary had become a replica or a replica had become a primary.
	RoleChanges int64 `json:"role_changes,omitempty"`
	// BusPublished is the number of messages that PUBLISH and SPUBLISH sent over the cluster bus between the nodes. On the
	// bus, each message is more than 2 KB larger than its payload. It is nil without a cluster.
	BusPublished *int64 `json:"bus_published,omitempty"`
	// BusReceived is the number of bytes that the nodes of a cluster received from each other on the bus, including
	// gossip, as Linux counts the bytes at the sockets. It is nil if the sockets are not visible, for example in a
	// container with its own network.
	BusReceived *int64 `json:"bus_bytes_received,omitempty"`
	// WALBytes is the number of bytes added to the write-ahead log; nil if not known.
	WALBytes *int64 `json:"wal_bytes,omitempty"`

	// RoundTrips, ClientBytesOut and ClientBytesIn are counted at the generator's sockets.
	RoundTrips     *int64 `json:"round_trips" add:"sum"` // requests written; a pipeline counts once
	ClientBytesOut *int64 `json:"client_bytes_out" add:"sum"`
	ClientBytesIn  *int64 `json:"client_bytes_in" add:"sum"`
	// OtherTraffic is the percentage of the bytes received by Redis that were not sent by this generator. It is known only
	// for intervals that begin and end without traffic.
	OtherTraffic *float64 `json:"foreign_percent" add:"none"`

	Nodes []NodeDelta `json:"nodes,omitempty"` // the nodes, if there are several

	// Own counts the commands and bytes of this generator's own readings; nil unless there are several generators. The
	// servers' counts in the reports of the other generators include them.
	Own *ObserverCounts `json:"own_readings,omitempty" add:"none"`
}

// NodeDelta is the increase of one node's counters. The counts of a replica include the commands and bytes that it
// received from its primary. The traffic between the nodes of a cluster is only in BusPublished and BusReceived.
type NodeDelta struct {
	Address  string           `json:"address"`
	Role     string           `json:"role,omitempty"` // primary or replica, at the end
	Calls    *int64           `json:"calls"`
	Commands map[string]int64 `json:"commands"`
	BytesIn  *int64           `json:"bytes_in"`
	BytesOut *int64           `json:"bytes_out"`
	CPU      *float64         `json:"cpu_seconds"`
	MainCPU  *float64         `json:"main_thread_cpu_seconds,omitempty"` // as in ServerDelta

	BusPublished *int64 `json:"bus_published,omitempty"`      // sent by this node, as in ServerDelta
	BusReceived  *int64 `json:"bus_bytes_received,omitempty"` // by this node, as in ServerDelta
}

// ServerPeak holds the largest numbers of connections and channel subscriptions, and the largest memory use, that the
// servers had in the window. They are sampled about once a second.
type ServerPeak struct {
	Clients       *int64 `json:"clients" add:"max"`       // connections
	Subscriptions *int64 `json:"subscriptions" add:"max"` // channel subscriptions over all connections
	MemoryBytes   *int64 `json:"memory_bytes" add:"max"`  // used_memory
}

// Raise raises each peak to the given value if that is larger. A value of 0 or nil means that it is not known, and
// changes nothing.
func (p *ServerPeak) Raise(clients, memory int64, subscriptions *int64) {
	addFields(p, ServerPeak{unlessZero(clients), subscriptions, unlessZero(memory)})
}

// unlessZero returns nil for 0, which means not known.
func unlessZero(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// flushes are the commands that remove the keys of all clients from a database.
var flushes = []string{"flushall", "flushdb", "swapdb"}

// LostKeys lists the ways in which the servers lost keys, which may include keys of locks. If the key of a held lock is
// lost, a second client can obtain the lock, and the strategy is not to blame. If restarts is false, restarts and
// failovers are left out.
func (d *ServerDelta) LostKeys(restarts bool) (ways []string) {
	if d == nil {
		return nil
	}
	if d.Evictions > 0 {
		ways = append(ways, "the server evicted "+words.Count(int(d.Evictions), "key"))
	}
	for _, command := range flushes {
		if n := d.Commands[command]; n > 0 {
			times := words.Count(int(n), "time")
			ways = append(ways, fmt.Sprintf("another client called %s %s", strings.ToUpper(command), times))
		}
	}
	if d.Restarts > 0 && restarts {
		ways = append(ways, "the server restarted or was replaced "+words.Count(int(d.Restarts), "time"))
	}
	if d.RoleChanges > 0 && restarts {
		ways = append(ways, "a failover changed the role of "+words.Count(int(d.RoleChanges), "server"))
	}
	return ways
}

// PerAcquisition divides a total by the acquisitions of the same interval; nil without
// acquisitions or without a total.
func (d *ServerDelta) PerAcquisition(total *int64) *float64 {
	if d == nil || total == nil || d.Acquisitions == 0 {
		return nil
	}
	return new(float64(*total) / float64(d.Acquisitions))
}

// threaded reports whether the servers have I/O threads in addition to the main one.
func (d *ServerDelta) threaded() bool { return d != nil && d.IOThreads > 1 }

// cpu returns the servers' CPU time per acquisition in nanoseconds: all is CPU less IdleCPU. With I/O threads, all is
// nil: main is the time of the thread that executes commands, and rest is that of all other threads, with nothing
// subtracted (see IOThreads).
func (d *ServerDelta) cpu() (all, main, rest *Figure) {
	if d == nil || d.Acquisitions == 0 {
		return nil, nil, nil
	}
	per := func(seconds float64, digits int) *Figure {
		return &Figure{Value: seconds / float64(d.Acquisitions) * 1e9, Digits: digits}
	}
	switch {
	case d.threaded() && d.MainCPU != nil:
		main = per(*d.MainCPU, 0)
		if d.CPU != nil {
			rest = per(max(0, *d.CPU-*d.MainCPU), 0)
		}
	case !d.threaded() && d.CPU != nil:
		used := *d.CPU
		if d.IdleCPU != nil {
			used -= *d.IdleCPU
		}
		if used > 0 { // otherwise it is too small to measure
			all = per(used, d.digits())
		}
	}
	return all, main, rest
}

// digits is the number of digits to which CPU − IdleCPU is known; 0 means the usual three. The subtraction multiplies
// the relative error of CPU by CPU ÷ (CPU − IdleCPU). This factor is over 1.5 if IdleCPU is more than a third of CPU,
// and over 3 if it is more than two thirds.
func (d *ServerDelta) digits() int {
	if d.IdleCPU == nil || *d.CPU <= 0 {
		return 0
	}
	switch subtracted := *d.IdleCPU / *d.CPU; {
	case subtracted > 2./3:
		return 1
	case subtracted > 1./3:
		return 2
	default:
		return 0
	}
}

// CPUPercent returns the CPU use of all servers in percent of one core; nil if it is not known.
func (d *ServerDelta) CPUPercent() *float64 {
	if d == nil || d.CPU == nil || d.Seconds <= 0 {
		return nil
	}
	return new(*d.CPU / d.Seconds * 100)
}

// MainThreadPercent returns the CPU use, in percent of one core, of the thread that executes commands. With several
// nodes, it returns that of the busiest one. It returns nil if no figure is known.
func (d *ServerDelta) MainThreadPercent() *float64 {
	if d == nil || d.Seconds <= 0 {
		return nil
	}
	busiest := d.MainCPU
	if len(d.Nodes) > 0 {
		busiest = nil
	}
	for _, n := range d.Nodes {
		if n.MainCPU != nil {
			busiest = new(max(*n.MainCPU, *cmp.Or(busiest, n.MainCPU)))
		}
	}
	if busiest == nil {
		return nil
	}
	return new(*busiest / d.Seconds * 100)
}

// Reading is what the servers of a run have counted since they started, summed over the nodes,
// and what the generator's sockets counted.
type Reading struct {
	At          time.Time        `add:"none"` // middle of the request
	Commands    map[string]int64 `add:"sum"`  // calls by command; nil if INFO commandstats is refused
	BytesIn     *int64           `add:"sum"`
	BytesOut    *int64           `add:"sum"`
	CPU         *float64         `add:"sum"` // seconds
	MainCPU     *float64         `add:"sum"` // seconds
	Evictions   int64            `add:"sum"`
	Restarts    int64            `add:"sum"` // as in ServerDelta
	RoleChanges int64            `add:"sum"` // as in ServerDelta
	// Role is the role that a single server reports. History is the ID of the replication history that the server began
	// when it was promoted; "" if it was never promoted. Both are "" if they are not known.
	Role      string `add:"none"`
	History   string `add:"none"`
	Clients   int64  `add:"sum"` // connections now; 0 if not known
	Memory    int64  `add:"sum"` // used_memory now, bytes; 0 if not known
	FromNodes int64  `add:"sum"` // the part of BytesIn that came from other nodes, such as replication

	BusPublished *int64 `add:"sum"` // as in ServerDelta
	BusReceived  *int64 `add:"sum"` // as in ServerDelta
	WALBytes     *int64 `add:"sum"` // as in ServerDelta

	IOThreads int `add:"none"` // the largest of the nodes, as in ServerDelta

	RoundTrips     int64 `add:"none"` // requests written by the generator, including this reading's
	ClientBytesOut int64 `add:"none"`
	ClientBytesIn  int64 `add:"none"`

	Observer ObserverCounts `add:"none"` // lockbench's own part in these counts

	Nodes []NodeReading `add:"none"` // the nodes, if there are several
}

// ObserverCounts counts the commands and bytes of lockbench's own readings, in total or between two readings.
type ObserverCounts struct {
	Commands   map[string]int64 `json:"commands"` // as Reading.Commands
	RoundTrips int64            `json:"round_trips"`
	BytesOut   int64            `json:"bytes_out"` // sent to Redis
	BytesIn    int64            `json:"bytes_in"`
}

// NodeReading is one node's part of a Reading, without the generator's counts.
type NodeReading struct {
	Address, Role string // role as in NodeDelta
	Reading       Reading
}

// Since returns the counts between an earlier reading and this one. acquisitions is the
// number of leases granted between them.
func (r Reading) Since(earlier Reading, acquisitions int64) *ServerDelta {
	d := &ServerDelta{
		Seconds:        r.At.Sub(earlier.At).Seconds(),
		Acquisitions:   acquisitions,
		BytesIn:        minus(r.BytesIn, earlier.BytesIn),
		BytesOut:       minus(r.BytesOut, earlier.BytesOut),
		CPU:            minus(r.CPU, earlier.CPU),
		MainCPU:        minus(r.MainCPU, earlier.MainCPU),
		IOThreads:      r.IOThreads,
		Evictions:      r.Evictions - earlier.Evictions,
		Restarts:       r.Restarts - earlier.Restarts,
		RoleChanges:    r.RoleChanges - earlier.RoleChanges,
		BusPublished:   minus(r.BusPublished, earlier.BusPublished),
		BusReceived:    minus(r.BusReceived, earlier.BusReceived),
		WALBytes:       minus(r.WALBytes, earlier.WALBytes),
		RoundTrips:     new(r.RoundTrips - earlier.RoundTrips),
		ClientBytesOut: new(r.ClientBytesOut - earlier.ClientBytesOut),
		ClientBytesIn:  new(r.ClientBytesIn - earlier.ClientBytesIn),
	}
	if r.Commands != nil && earlier.Commands != nil {
		d.Commands, d.Calls = map[string]int64{}, new(int64)
		for command, calls := range r.Commands {
			if delta := calls - earlier.Commands[command]; delta > 0 {
				d.Commands[command] = delta
				*d.Calls += delta
			}
		}
	}
	if d.BytesIn != nil && *d.BytesIn > 0 {
		strangers := *d.BytesIn - *d.ClientBytesOut - (r.FromNodes - earlier.FromNodes)
		d.OtherTraffic = new(max(0, float64(strangers)/float64(*d.BytesIn)*100))
	}
	d.Nodes = nodesSince(r.Nodes, earlier.Nodes)
	return d
}

// ClientsSince is like Since, but subtracts the commands and bytes of lockbench's own readings, so that those of the
// clients remain.
func (r Reading) ClientsSince(earlier Reading, acquisitions int64) *ServerDelta {
	d, own := r.Since(earlier, acquisitions), r.Observer.Since(earlier.Observer)
	d.subtract(own)
	d.RoundTrips = less(d.RoundTrips, own.RoundTrips)
	d.ClientBytesOut, d.ClientBytesIn = less(d.ClientBytesOut, own.BytesOut), less(d.ClientBytesIn, own.BytesIn)
	return d
}

// Since returns the counts between an earlier reading and this one.
func (o ObserverCounts) Since(earlier ObserverCounts) ObserverCounts {
	o.Commands = maps.Clone(o.Commands)
	for command := range o.Commands {
		o.Commands[command] -= earlier.Commands[command]
	}
	o.RoundTrips -= earlier.RoundTrips
	o.BytesOut -= earlier.BytesOut
	o.BytesIn -= earlier.BytesIn
	return o
}

// subtract subtracts the commands and bytes of a generator's readings from what the servers counted. It modifies no
// value through a pointer that another record may share.
func (d *ServerDelta) subtract(own ObserverCounts) {
	d.Commands = maps.Clone(d.Commands)
	for command, calls := range own.Commands {
		if _, known := d.Commands[command]; !known { // before Redis 7 there are no subcommands in INFO
			command, _, _ = strings.Cut(command, "|")
		}
		if calls = min(calls, d.Commands[command]); calls > 0 {
			d.Calls = less(d.Calls, calls)
			d.Commands[command] -= calls
		}
		if d.Commands[command] == 0 {
			delete(d.Commands, command)
		}
	}
	d.BytesIn, d.BytesOut = less(d.BytesIn, own.BytesOut), less(d.BytesOut, own.BytesIn)
}

// less returns count − part or, if that is negative, 0; nil if the count is not known.
func less(count *int64, part int64) *int64 {
	if count == nil {
		return nil
	}
	return new(max(0, *count-part))
}

// nodesSince applies Since to each node that is in both readings.
func nodesSince(later, earlier []NodeReading) []NodeDelta {
	before := map[string]Reading{}
	for _, n := range earlier {
		before[n.Address] = n.Reading
	}
	var deltas []NodeDelta
	for _, n := range later {
		if first, ok := before[n.Address]; ok {
			d := n.Reading.Since(first, 0)
			deltas = append(deltas, NodeDelta{
				Address: n.Address, Role: n.Role,
				Calls: d.Calls, Commands: d.Commands, BytesIn: d.BytesIn, BytesOut: d.BytesOut, CPU: d.CPU,
				MainCPU: d.MainCPU, BusPublished: d.BusPublished, BusReceived: d.BusReceived,
			})
		}
	}
	return deltas
}

// minus returns later − earlier; nil if either is not known.
func minus[N int64 | float64](later, earlier *N) *N {
	if later == nil || earlier == nil {
		return nil
	}
	return new(*later - *earlier)
}

// Plus returns the sum of two nodes' counts. A count that one of the nodes does not report becomes nil. The generator's
// counts and the list of nodes are not added.
func (r Reading) Plus(other Reading) Reading {
	addFields(&r, other)
	return r
}
