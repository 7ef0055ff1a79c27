package results

import (
	"maps"
	"strings"
	"time"
)

// Reading is what the servers of a run have counted since they started, summed over the nodes,
// and what the generator's sockets counted.
type Reading struct {
	At        time.Time        // middle of the request
	Commands  map[string]int64 // calls by command; nil if INFO commandstats is refused
	BytesIn   *int64
	BytesOut  *int64
	CPU       *float64 // seconds
	MainCPU   *float64 // seconds
	Evictions int64
	Clients   int64 // connections now; 0 if not known
	Memory    int64 // used_memory now, bytes; 0 if not known
	FromNodes int64 // the part of BytesIn that came from other nodes, such as replication

	BusPublished *int64 // as in ServerDelta
	BusReceived  *int64 // as in ServerDelta
	WALBytes     *int64 // as in ServerDelta

	IOThreads int // the largest of the nodes, as in ServerDelta

	RoundTrips     int64 // requests written by the generator, including this reading's
	ClientBytesOut int64
	ClientBytesIn  int64

	Observer ObserverCounts // lockbench's own part in these counts

	Nodes []NodeReading // the nodes, if there are several
}

// ObserverCounts is what lockbench's own readings have cost so far.
type ObserverCounts struct {
	Commands   map[string]int64 // as Reading.Commands
	RoundTrips int64
	BytesOut   int64 // sent to Redis
	BytesIn    int64
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

// ClientsSince is Since without lockbench's own readings: only what the clients did.
func (r Reading) ClientsSince(earlier Reading, acquisitions int64) *ServerDelta {
	d := r.Since(earlier, acquisitions)
	for command, calls := range r.Observer.Commands {
		if _, known := d.Commands[command]; !known { // before Redis 7 there are no subcommands in INFO
			command, _, _ = strings.Cut(command, "|")
		}
		own := min(calls-earlier.Observer.Commands[command], d.Commands[command])
		if own > 0 {
			*d.Calls -= own
			d.Commands[command] -= own
		}
		if d.Commands[command] == 0 {
			delete(d.Commands, command)
		}
	}
	sent, received := r.Observer.BytesOut-earlier.Observer.BytesOut, r.Observer.BytesIn-earlier.Observer.BytesIn
	for _, less := range []struct {
		from *int64
		by   int64
	}{
		{d.RoundTrips, r.Observer.RoundTrips - earlier.Observer.RoundTrips},
		{d.ClientBytesOut, sent},
		{d.ClientBytesIn, received},
		{d.BytesIn, sent},
		{d.BytesOut, received},
	} {
		if less.from != nil {
			*less.from = max(0, *less.from-less.by)
		}
	}
	return d
}

// nodesSince is Since for each node that is in both readings.
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
				Calls: d.Calls, Commands: d.Commands, BytesIn: d.BytesIn, BytesOut: d.BytesOut, CPU: d.CPU, MainCPU: d.MainCPU, BusPublished: d.BusPublished, BusReceived: d.BusReceived,
			})
		}
	}
	return deltas
}

func minus[N int64 | float64](later, earlier *N) *N {
	if later == nil || earlier == nil {
		return nil
	}
	return new(*later - *earlier)
}

// Plus adds the counts of two nodes; a count that one of them does not have is nil. It
// leaves out the generator's counts and the list of nodes.
func (r Reading) Plus(other Reading) Reading {
	sum := Reading{
		BytesIn:   plus(r.BytesIn, other.BytesIn),
		BytesOut:  plus(r.BytesOut, other.BytesOut),
		CPU:       plus(r.CPU, other.CPU),
		MainCPU:   plus(r.MainCPU, other.MainCPU),
		FromNodes: r.FromNodes + other.FromNodes,
		Evictions: r.Evictions + other.Evictions,
		Clients:   r.Clients + other.Clients,
		Memory:    r.Memory + other.Memory,

		BusPublished: plus(r.BusPublished, other.BusPublished),
		BusReceived:  plus(r.BusReceived, other.BusReceived),
		WALBytes:     plus(r.WALBytes, other.WALBytes),
	}
	if r.Commands != nil && other.Commands != nil {
		sum.Commands = maps.Clone(r.Commands)
		for command, calls := range other.Commands {
			sum.Commands[command] += calls
		}
	}
	return sum
}

// plus returns the sum; nil if one of the two is not known.
func plus[N int64 | float64](a, b *N) *N {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}
