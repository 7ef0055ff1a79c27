package workloads

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Fault is something that goes wrong on purpose during a run. It reads and writes itself as
// text, its options in any order:
//
//	holder-pause:at=2s,for=3s
//	kill:at=3s,for=1s,data=lose
//	waiter-crash:every=5s,n=3
//
// ParseFault fills in what is left out; FaultKinds lists the kinds.
type Fault struct {
	Name  string
	At    Duration // the first time, after the window opened
	Every Duration // the time between repeats; 0 means once
	For   Duration // how long it lasts; 0 means what Lasts says

	N         int      // waiters or nodes that are hit
	Command   int      // the last command of an acquisition that is sent
	Data      Data     // what becomes of the server's data
	Node      int      // the index of the node that is hit; of several independent ones the first
	Lag       Duration // how far a replica is behind; 0 means the TTL
	Instances int      // application instances that are hit; 0 means all
	Delay     Duration // of everything that is sent
	Jitter    Duration // by which Delay varies at random
	Rate      int      // KB/s
	Promote   Promote  // which replica takes over
}

// Promote is which replica takes over from a primary that has died.
type Promote string

const (
	// PromoteLagging is the one that has heard nothing of its primary for a while.
	PromoteLagging Promote = "lagging"
	// PromoteAdvanced is the one that has received the most, as Sentinel prefers it.
	PromoteAdvanced Promote = "advanced"
)

// Data is what becomes of a server's data when it is started again.
type Data string

const (
	// DataLose starts it empty.
	DataLose Data = "lose"
	// DataKeep starts it with what it had when it was killed.
	DataKeep Data = "keep"
)

// The faults by name.
const (
	HolderCrash  = "holder-crash"
	HolderPause  = "holder-pause"
	WaiterCrash  = "waiter-crash"
	CrashBetween = "crash-between"

	Kill             = "kill"
	Pause            = "pause"
	ClientPause      = "client-pause"
	ScriptFlush      = "script-flush"
	KillSubscribers  = "kill-subscribers"
	Failover         = "failover"
	NodeDown         = "node-down"
	NodeHang         = "node-hang"
	NodeRestartEmpty = "node-restart-empty"
	NodeExpireEarly  = "node-expire-early"

	Latency   = "latency"
	Bandwidth = "bandwidth"
	Reset     = "reset"
	Partition = "partition"
	HalfOpen  = "half-open"
)

// Place is where a fault is injected.
type Place string

const (
	// InClients are faults of a target, an application instance that the workload
	// gets for it. Redis is not touched.
	InClients Place = "client"
	// OnServers are faults of a Redis that lockbench may disturb.
	OnServers Place = "server"
	// OnNetwork are faults of proxies between the workload's instances and Redis.
	OnNetwork Place = "network"
)

// FaultKind describes all faults of one name.
type FaultKind struct {
	Name    string
	Summary string
	Place   Place
	// Owned says that it needs a Redis that lockbench started itself.
	Owned bool
	// Topology is the kind of servers that it needs: "nodes" or "replicas"; "" means any.
	Topology string

	options []string // name=default, beside at and every
}

// FaultKinds returns all kinds.
func FaultKinds() []FaultKind {
	client := func(name, summary string, options ...string) FaultKind {
		return FaultKind{Name: name, Summary: summary, Place: InClients, options: options}
	}
	server := func(name, summary string, options ...string) FaultKind {
		return FaultKind{Name: name, Summary: summary, Place: OnServers, options: options}
	}
	owned := func(topology, name, summary string, options ...string) FaultKind {
		return FaultKind{Name: name, Summary: summary, Place: OnServers, Owned: true, Topology: topology, options: options}
	}
	network := func(name, summary string, options ...string) FaultKind {
		return FaultKind{Name: name, Summary: summary, Place: OnNetwork, options: append(options, "instances=0")}
	}
	expire := server(NodeExpireEarly, "the leases on n independent nodes run out at once, as when their clocks jump", "n=1", "node=1")
	expire.Topology = "nodes"
	return []FaultKind{
		client(HolderCrash, "a client dies while it holds the lock: it never releases, and nothing renews its lease"),
		client(HolderPause, "a client's process stands still while it holds the lock (garbage collection, SIGSTOP), and then goes on", "for=0s"),
		client(WaiterCrash, "a process with n clients dies while they wait for the lock", "n=1"),
		client(CrashBetween, "a client dies between two commands of an acquisition, after so many different ones", "command=1"),
		owned("", Kill, "Redis is killed, and started again empty or with what it had", "for=1s", "data=lose", "node=0"),
		owned("", Pause, "Redis stands still (SIGSTOP) with its connections open", "for=1s", "node=0"),
		server(ClientPause, "Redis carries out no command for a while (CLIENT PAUSE)", "for=1s", "node=0"),
		server(ScriptFlush, "Redis forgets all scripts (SCRIPT FLUSH)"),
		server(KillSubscribers, "Redis closes the connections of all subscribers of the run (CLIENT KILL)"),
		owned("replicas", Failover, "the primary is killed, when a replica has heard nothing of it for a while; that one or the most advanced takes over", "lag=0s", "for=1s", "promote=lagging"),
		owned("nodes", NodeDown, "n independent nodes are down for a while, and come back with what they had", "for=1s", "n=1", "node=1"),
		owned("nodes", NodeHang, "n independent nodes accept connections and never answer, for a while", "for=1s", "n=1", "node=1"),
		owned("nodes", NodeRestartEmpty, "n independent nodes are killed and started again empty", "n=1", "node=1"),
		expire,
		network(Latency, "what goes over the network takes longer, in each direction", "for=1s", "delay=5ms", "jitter=0s"),
		network(Bandwidth, "the network is slow", "for=1s", "rate=10"),
		network(Reset, "connections break as soon as anything goes over them, new ones too", "for=100ms"),
		network(Partition, "nothing goes over the network; what is sent arrives afterwards", "for=1s"),
		network(HalfOpen, "connections go silent and are closed only after a while; new ones work", "for=1s"),
	}
}

// resolved fills in what a fault leaves to its workload.
func (s Spec) resolved(f Fault) Fault {
	if f.Name == HolderPause && f.For == 0 {
		f.For = 2 * s.TTL
	}
	if f.Name == Failover && f.Lag == 0 {
		f.Lag = s.TTL
	}
	return f
}

// FaultOption is an option of a kind.
type FaultOption struct {
	Name    string
	Default string
	Help    string

	set   func(*Fault, string) error
	get   func(Fault) string
	check func(Fault) error // of its value by itself
}

// Options returns the options of the kind, with its defaults.
func (k FaultKind) Options() []FaultOption {
	all := faultOptions()
	var options []FaultOption
	for _, text := range append([]string{"at=1s", "every=0s"}, k.options...) {
		name, value, _ := strings.Cut(text, "=")
		for _, o := range all {
			if o.Name == name {
				o.Default = value
				options = append(options, o)
			}
		}
	}
	return options
}

// Takes says whether the kind has an option.
func (k FaultKind) Takes(option string) bool {
	return slices.ContainsFunc(k.Options(), func(o FaultOption) bool { return o.Name == option })
}

// faultOptions are the options of all kinds.
func faultOptions() []FaultOption {
	return []FaultOption{
		timeOption("at", "when, since the window opened", func(f *Fault) *Duration { return &f.At }),
		timeOption("every", "again after that long, and so on; 0s: once", func(f *Fault) *Duration { return &f.Every }),
		timeOption("for", "how long it lasts; 0s of holder-pause: twice the TTL", func(f *Fault) *Duration { return &f.For }),
		timeOption("lag", "for how long the replica has heard nothing of its primary; 0s: the TTL, so that it knows of no lock any more", func(f *Fault) *Duration { return &f.Lag }),
		timeOption("delay", "of everything that is sent, in either direction", func(f *Fault) *Duration { return &f.Delay }),
		timeOption("jitter", "that much more or less, at random", func(f *Fault) *Duration { return &f.Jitter }),
		countOption("n", 1, "how many are hit", func(f *Fault) *int { return &f.N }),
		countOption("command", 1, "the last that is sent, of the different ones of an acquisition", func(f *Fault) *int { return &f.Command }),
		countOption("node", 0, "which node is hit, from 0; of several the first", func(f *Fault) *int { return &f.Node }),
		countOption("instances", 0, "application instances that are hit; 0: all", func(f *Fault) *int { return &f.Instances }),
		countOption("rate", 1, "KB/s in either direction", func(f *Fault) *int { return &f.Rate }),
		{Name: "data", Help: "lose or keep: start it again empty, or with what it had", set: setData,
			get: func(f Fault) string { return string(f.Data) }, check: func(Fault) error { return nil }},
		{Name: "promote", Help: "lagging or advanced: the replica that takes over is the one that lags, or the one that has received the most, as Sentinel prefers it", set: setPromote,
			get: func(f Fault) string { return string(f.Promote) }, check: func(Fault) error { return nil }},
	}
}

func timeOption(name, help string, at func(*Fault) *Duration) FaultOption {
	return FaultOption{
		Name: name, Help: help,
		set: func(f *Fault, text string) error { return at(f).UnmarshalText([]byte(text)) },
		get: func(f Fault) string { return at(&f).String() },
		check: func(f Fault) error {
			if d := *at(&f); d < 0 {
				return fmt.Errorf("%s must not be negative, not %v", name, d)
			}
			return nil
		},
	}
}

func countOption(name string, least int, help string, at func(*Fault) *int) FaultOption {
	return FaultOption{
		Name: name, Help: help,
		set: func(f *Fault, text string) error { return ParseWhole(text, at(f)) },
		get: func(f Fault) string { return strconv.Itoa(*at(&f)) },
		check: func(f Fault) error {
			if n := *at(&f); n < least {
				return fmt.Errorf("%s must be at least %d, not %d", name, least, n)
			}
			return nil
		},
	}
}

func setData(f *Fault, text string) error {
	f.Data = Data(text)
	if f.Data != DataLose && f.Data != DataKeep {
		return fmt.Errorf("%q is neither lose nor keep", text)
	}
	return nil
}

func setPromote(f *Fault, text string) error {
	f.Promote = Promote(text)
	if f.Promote != PromoteLagging && f.Promote != PromoteAdvanced {
		return fmt.Errorf("%q is neither lagging nor advanced", text)
	}
	return nil
}
