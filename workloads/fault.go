package workloads

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/words"
)

// Fault is a fault that a run injects on purpose. Its text form has the options in any order:
//
//	holder-pause:at=2s,for=3s
//	kill:at=3s,for=1s,data=lose
//	waiter-crash:every=5s,n=3
//
// ParseFault fills in omitted options; FaultKinds lists the kinds.
type Fault struct {
	Name string
	// At is the time from the opening of the window to the first injection. Every is the time between the starts of two
	// injections; 0 means a single injection.
	At    Duration `json:"at" min:"0s" help:"time of the fault after the window opens"`
	Every Duration `json:"every" min:"0s" help:"time between two injections; 0s: one injection"`
	// For is the length of the fault. 0 means an instantaneous fault, but for holder-pause it means twice the TTL.
	For Duration `json:"for" min:"0s" help:"how long it lasts; 0s of holder-pause: twice the TTL"`
	// Lag is how long before a failover the lagging replica stops receiving data from its primary; 0 means the TTL.
	Lag    Duration `json:"lag" min:"0s" help:"time for which the replica has received nothing from its primary; 0s: the TTL"`
	Delay  Duration `json:"delay" min:"0s" help:"delay of every message, in either direction"`
	Jitter Duration `json:"jitter" min:"0s" help:"random variation of the delay, plus or minus"`

	N         int     `json:"n" min:"1" help:"number of waiters or nodes that are hit"`
	Command   int     `json:"command" min:"1" help:"number of different commands of an acquisition after which the client dies"`
	Node      int     `json:"node" min:"0" help:"index from 0 of the node that is hit, or of the first of n nodes"`
	Instances int     `json:"instances" min:"0" help:"number of application instances that are hit; 0: all"`
	Rate      int     `json:"rate" min:"1" help:"bandwidth in KB/s, in either direction"`
	Percent   int     `json:"percent" min:"1" help:"percentage by which the clock runs fast"`
	Data      Data    `json:"data" words:"lose keep" help:"lose or keep: restart it empty, or with its data"`
	Promote   Promote `json:"promote" words:"lagging advanced restarted" help:"which replica takes over"`
}

// Promote selects the replica that takes over from a dead primary.
type Promote string

const (
	// PromoteLagging promotes the replica that has received nothing from its primary for the time Lag.
	PromoteLagging Promote = "lagging"
	// PromoteAdvanced promotes the replica that has received the most data, as Sentinel does.
	PromoteAdvanced Promote = "advanced"
	// PromoteRestarted promotes the lagging replica after it was killed together with the primary and started again with
	// only the data on its disk.
	PromoteRestarted Promote = "restarted"
)

// Data selects the data with which a killed server starts again.
type Data string

const (
	// DataLose starts the server empty.
	DataLose Data = "lose"
	// DataKeep starts the server with the data that it had when it was killed.
	DataKeep Data = "keep"
)

// These names identify the kinds of faults in flags, files and reports.
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
	NodeDrift        = "node-drift"

	Latency   = "latency"
	Bandwidth = "bandwidth"
	Reset     = "reset"
	Partition = "partition"
	HalfOpen  = "half-open"
)

// Place is the part of the system in which a fault is injected.
type Place string

const (
	// InClients is the place of faults in an additional application instance, the target. Such faults do not disturb
	// Redis.
	InClients Place = "client"
	// OnServers is the place of faults in a Redis that lockbench may disturb.
	OnServers Place = "server"
	// OnNetwork is the place of faults in the proxies between the workload's instances and Redis.
	OnNetwork Place = "network"
)

// FaultKind describes a kind of fault, such as holder-pause: where it strikes, what it needs, and its options.
type FaultKind struct {
	Name    string
	Summary string
	Place   Place
	// Owned is true if the fault needs a Redis that lockbench has started.
	Owned bool
	// Topology is the kind of servers that the fault needs: "nodes" or "replicas"; "" means any.
	Topology string

	options string // name=default for each option except at and every
}

// FaultKinds returns all kinds of faults, with their summaries and requirements.
func FaultKinds() []FaultKind {
	client := FaultKind{Place: InClients}
	server := FaultKind{Place: OnServers}
	independent := FaultKind{Place: OnServers, Topology: "nodes"}
	owned := FaultKind{Place: OnServers, Owned: true}
	replicas := FaultKind{Place: OnServers, Owned: true, Topology: "replicas"}
	nodes := FaultKind{Place: OnServers, Owned: true, Topology: "nodes"}
	network := FaultKind{Place: OnNetwork}
	return []FaultKind{
		client.of(HolderCrash, "a client dies while it holds the lock: no release, and nothing renews its lease", ""),
		client.of(HolderPause, "a client's process stops while it holds the lock (garbage collection, SIGSTOP), "+
			"and then continues", "for=0s"),
		client.of(WaiterCrash, "a process with n clients dies while they wait for the lock", "n=1"),
		client.of(CrashBetween, "a client dies between two commands of an acquisition", "command=1"),
		owned.of(Kill, "Redis is killed, and restarted empty or with its data", "for=1s,data=lose,node=0"),
		owned.of(Pause, "Redis is stopped (SIGSTOP) with its connections open", "for=1s,node=0"),
		server.of(ClientPause, "Redis executes no commands until the fault ends (CLIENT PAUSE)", "for=1s,node=0"),
		server.of(ScriptFlush, "Redis forgets all scripts (SCRIPT FLUSH)", ""),
		server.of(KillSubscribers, "Redis closes the connections of all subscribers of the run (CLIENT KILL)", ""),
		replicas.of(Failover, "the primary is killed once a replica has received nothing from it for the time lag; "+
			"promote selects the replica that takes over", "lag=0s,for=1s,promote=lagging"),
		nodes.of(NodeDown, "n independent nodes are down, and return with their data", "for=1s,n=1,node=1"),
		nodes.of(NodeHang, "n independent nodes accept connections but do not reply", "for=1s,n=1,node=1"),
		nodes.of(NodeRestartEmpty, "n independent nodes are killed and restarted empty", "n=1,node=1"),
		independent.of(NodeExpireEarly, "the leases on n independent nodes expire at once, as if their clocks had jumped",
			"n=1,node=1"),
		independent.of(NodeDrift, "the leases on n independent nodes expire early, as if their clocks ran fast",
			"for=1s,percent=1,n=1,node=1"),
		network.of(Latency, "messages take longer, in each direction", "for=1s,delay=5ms,jitter=0s,instances=0"),
		network.of(Bandwidth, "the network is slow", "for=1s,rate=10,instances=0"),
		network.of(Reset, "all connections, including new ones, break with a TCP reset", "for=100ms,instances=0"),
		network.of(Partition, "no message passes; messages sent in this time arrive when the fault ends",
			"for=1s,instances=0"),
		network.of(HalfOpen, "existing connections transfer nothing and are closed when the fault ends; new ones work",
			"for=1s,instances=0"),
	}
}

func (k FaultKind) of(name, summary, options string) FaultKind {
	k.Name, k.Summary, k.options = name, summary, options
	return k
}

// resolved replaces values of 0 that stand for a multiple of the workload's TTL. A holder-pause of length 0 lasts twice
// the TTL, and the lag of a failover is the TTL if it is 0.
func (s Spec) resolved(f Fault) Fault {
	if f.Name == HolderPause && f.For == 0 {
		f.For = 2 * s.TTL
	}
	if f.Name == Failover && f.Lag == 0 {
		f.Lag = s.TTL
	}
	return f
}

// Options returns the options that the kind accepts, with the kind's default values.
func (k FaultKind) Options() []Field {
	all := fieldsOf(reflect.TypeFor[Fault]())
	var options []Field
	for text := range strings.SplitSeq("at=1s,every=0s,"+k.options, ",") {
		name, value, _ := strings.Cut(text, "=")
		if at := named(all, name); at >= 0 {
			all[at].Default = value
			options = append(options, all[at])
		}
	}
	return options
}

func named(options []Field, name string) int {
	return slices.IndexFunc(options, func(o Field) bool { return o.Name == name })
}

// Takes reports whether the kind has the named option.
func (k FaultKind) Takes(option string) bool { return named(k.Options(), option) >= 0 }

// ParseFault parses the text form of a fault, such as kill:at=3s. Its error lists every mistake.
func ParseFault(text string) (Fault, error) {
	var f Fault
	err := f.UnmarshalText([]byte(text))
	return f, err
}

// Kind returns the kind of the fault; the zero FaultKind if the name is unknown.
func (f Fault) Kind() FaultKind {
	for _, kind := range FaultKinds() {
		if kind.Name == f.Name {
			return kind
		}
	}
	return FaultKind{}
}

// String returns the text form (see Fault). It omits every option that has its default, except at, which it always
// includes.
func (f Fault) String() string {
	var options []string
	for _, o := range f.Kind().Options() {
		value := fmt.Sprint(reflect.ValueOf(f).Field(o.index).Interface())
		if value != o.Default || o.Name == "at" {
			options = append(options, o.Name+"="+value)
		}
	}
	return strings.TrimSuffix(f.Name+":"+strings.Join(options, ","), ":")
}

// MarshalText returns the same text as String.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText parses the text form (see Fault) and fills in omitted options. Its error lists every mistake.
func (f *Fault) UnmarshalText(text []byte) error {
	name, rest, _ := strings.Cut(string(text), ":")
	parsed := Fault{Name: strings.TrimSpace(name)}
	kind := parsed.Kind()
	if kind.Name == "" {
		var names []string
		for _, k := range FaultKinds() {
			names = append(names, k.Name)
		}
		return fmt.Errorf("unknown fault %q%s", parsed.Name, suggestion(parsed.Name, names))
	}
	options := kind.Options()
	settings := map[string]string{}
	var wrong []error
	for setting := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == ',' }) {
		key, value, _ := strings.Cut(setting, "=")
		key = strings.TrimSpace(key)
		if named(options, key) < 0 {
			wrong = append(wrong, fmt.Errorf("%s: no option %q%s", kind.Name, key, suggestion(key, names(options))))
		} else if _, twice := settings[key]; twice {
			wrong = append(wrong, fmt.Errorf("%s: %s is given twice", kind.Name, key))
		}
		settings[key] = strings.TrimSpace(value)
	}
	for _, o := range options {
		text, given := settings[o.Name]
		if !given {
			text = o.Default
		}
		at := reflect.ValueOf(&parsed).Elem().Field(o.index)
		v, err := parse(text, at.Type())
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %s: %w", kind.Name, o.Name, err))
			continue
		}
		at.Set(v)
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	*f = parsed
	return nil
}

// suggestion returns the end of an error message about an unknown name. It suggests the most similar known name, if one
// is near, and lists all known names.
func suggestion(name string, known []string) string {
	return words.Suggest("%q", name, known) + " (there are: " + strings.Join(known, ", ") + ")"
}

func names(options []Field) []string {
	var all []string
	for _, o := range options {
		all = append(all, o.Name)
	}
	return all
}

// Lasts returns the duration of a fault under this workload, including its preparation; 0 for an instantaneous fault.
func (s Spec) Lasts(f Fault) time.Duration {
	f = s.resolved(f)
	return time.Duration(f.For + f.Lag)
}

// leastEvery is the shortest allowed time between two injections of a fault, because the report lists every injection.
const leastEvery = Duration(10 * time.Millisecond)

// maxWaiters is the largest number of waiters that a waiter-crash can hit at the same time.
const maxWaiters = 1000

// checkFaults checks that each fault is valid and fits this workload.
func (s Spec) checkFaults(check func(ok bool, format string, args ...any)) {
	for _, f := range s.Faults {
		kind := f.Kind()
		check(kind.Name != "", "--fault %s: unknown fault", f.Name)
		about := func(ok bool, format string, args ...any) {
			check(ok, "--fault %s: %w", f.Name, fmt.Errorf(format, args...))
		}
		for _, o := range kind.Options() {
			err := o.check(reflect.ValueOf(f))
			about(err == nil, "%w", err)
		}
		if kind.Name != "" {
			s.checkFault(f, about)
		}
	}
	check(len(s.Faults) == 0 || s.Burst == 0,
		"--fault is not supported with --burst, where all clients wait for each other")
}

// checkFault checks the times and the other options of a fault of a known kind.
func (s Spec) checkFault(f Fault, check func(ok bool, format string, args ...any)) {
	lasts := s.Lasts(f)
	check(f.Every <= 0 || f.Every >= leastEvery, "every must be at least %v, not %v", leastEvery, f.Every)
	check(f.Every <= 0 || time.Duration(f.Every) > lasts, "every %v is too short: the fault lasts %v", f.Every, lasts)
	// Locks stay available during these two faults, so they may last until the window closes.
	slows := f.Name == Latency || f.Name == Bandwidth
	end, window, why := time.Duration(f.At)+lasts, time.Duration(s.Duration), ""
	if s.resolved(f) != f {
		why = fmt.Sprintf("; the fault's length follows from --ttl %v unless its options set it", s.TTL)
	}
	check(s.Iterations > 0 || end < window || end == window && slows,
		"the fault would end %v after the window opens, which is %v long (--duration)%s", end, s.Duration, why)
	check(f.Instances <= s.Instances, "instances must be at most %[2]d, not %[1]d", f.Instances, s.Instances)
	check(f.Name != WaiterCrash || f.N <= maxWaiters, "n must be at most %d, not %d", maxWaiters, f.N)
	check(f.Jitter <= f.Delay, "jitter %v is more than the delay of %v", f.Jitter, f.Delay)
	check(f.Delay%Duration(time.Millisecond) == 0 && f.Jitter%Duration(time.Millisecond) == 0,
		"delay and jitter must be whole milliseconds, not %v and %v", f.Delay, f.Jitter)
}
