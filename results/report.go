package results

import (
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// Schema is the version of the document. It changes if a field is removed or changes its meaning.
const Schema = "lockbench/report/1"

// Report is everything that one call of lockbench measured.
type Report struct {
	Schema   string    `json:"schema"`
	Tool     Tool      `json:"tool"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`

	Environment Environment `json:"environment"`
	Redis       Redis       `json:"redis"`
	// Stores describes the stores other than Redis that strategies used.
	Stores   []Store        `json:"stores,omitempty"`
	Workload workloads.Spec `json:"workload"` // in a sweep, that of the first point
	// Points are the workloads of a sweep. Run.Point is the label of a run's point.
	Points     []workloads.Point `json:"points,omitempty"`
	Rounds     int               `json:"rounds"` // planned runs of each strategy
	Strategies []Strategy        `json:"strategies"`
	LeftOut    []LeftOut         `json:"left_out,omitempty"`
	Baselines  *Baselines        `json:"baselines,omitempty"`
	Runs       []Run             `json:"runs"`

	// Server is what Redis counted during the whole call: the difference between INFO before lockbench's first command and
	// INFO after the clean-up of the last run. So it includes the baselines and the preparation of the runs.
	Server *ServerDelta `json:"server_total,omitempty"`

	Shared     *Shared         `json:"shared,omitempty"` // set if other generators took part
	Generators []GeneratorPart `json:"parts,omitempty"`  // the generators of a merged report

	Thresholds []Judgement `json:"thresholds,omitempty"` // the result of each, see Judge

	Warnings    Remarks `json:"warnings,omitempty"`
	Interrupted bool    `json:"interrupted,omitempty"` // stopped by the user: runs are missing or partial
	Error       string  `json:"error,omitempty"`       // what ended it early
	Unreachable bool    `json:"unreachable,omitempty"` // Redis no longer replied
}

// File is a report with the name of the file that contains it.
type File struct {
	Name string
	*Report
}

// Planned returns the points of the sweep or, without a sweep, a single point with the workload and no label.
func (r *Report) Planned() []workloads.Point {
	if len(r.Points) > 0 {
		return r.Points
	}
	return []workloads.Point{{Workload: r.Workload}}
}

// WorkloadOf returns the workload of a run: in a sweep, that of the run's point.
func (r *Report) WorkloadOf(run Run) workloads.Spec {
	for _, point := range r.Points {
		if point.Label == run.Point {
			return point.Workload
		}
	}
	return r.Workload
}

// ServerOf returns the server that a run used: that of its strategy's store, otherwise the Redis of the report.
func (r *Report) ServerOf(run Run) Redis {
	for _, s := range r.Stores {
		here := func(one Strategy) bool { return one.Name == run.Strategy && one.Store == s.Name }
		if slices.ContainsFunc(r.Strategies, here) {
			return s.Server
		}
	}
	return r.Redis
}

// Tool is the build of lockbench that made the measurement.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"` // of its sources
	Branch  string `json:"branch,omitempty"` // as the CI system names it
}

// Build returns the version, with the commit unless the version contains it.
func (t Tool) Build() string {
	if t.Commit == "" || strings.Contains(t.Version, t.Commit[:min(len(t.Commit), 7)]) {
		return t.Version
	}
	return t.Version + " " + t.Commit[:min(len(t.Commit), 12)]
}

// Environment describes the machine and the Go runtime of the generator.
type Environment struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Kernel     string `json:"kernel,omitempty"`
	CPUModel   string `json:"cpu_model,omitempty"`
	CPUs       int    `json:"cpus"`       // of the machine
	GoMaxProcs int    `json:"gomaxprocs"` // of the generator
	Go         string `json:"go"`
	// AllowedCPUs are the CPUs on which the generator's process may run; empty if the system does not report them.
	AllowedCPUs    []int `json:"allowed_cpus,omitempty"`
	TimerOvershoot int64 `json:"timer_overshoot_ns"` // median lateness of a 50 µs sleep on the idle machine
}

// Redis describes the Redis on which the runs of a report were measured. It contains no password.
type Redis struct {
	Source   string   `json:"source"`             // container, process or address
	Address  string   `json:"address"`            // host:port, or unix socket, of the first node
	Topology string   `json:"topology,omitempty"` // single, nodes:N, replicas:N or cluster:N
	Nodes    []string `json:"nodes,omitempty"`    // addresses of all nodes if there are several; primaries first
	// Name is the server's own name: redis, valkey, keydb, dragonfly; empty if the server does not report it, or in a
	// report of an earlier version.
	Name      string `json:"name,omitempty"`
	Version   string `json:"version,omitempty"`
	Mode      string `json:"mode,omitempty"`       // standalone, cluster, sentinel
	Network   string `json:"network,omitempty"`    // loopback, host, published port, remote
	Protocol  int    `json:"protocol,omitempty"`   // RESP version of the connections
	IOThreads *int   `json:"io_threads,omitempty"` // of the first node, including the main one; absent if not known
	Image     string `json:"image,omitempty"`
	TLS       bool   `json:"tls,omitempty"`
	// Durability states what a crash of the server may lose: with "memory" everything, with "every second" and "when the
	// operating system decides" the latest writes, and with "fsync" no confirmed write. It is absent if not known.
	Durability string `json:"durability,omitempty"`
	// AllowedCPUs are the CPUs of this machine on which the server's processes may run; empty if not known, for example if
	// the server is on another machine.
	AllowedCPUs []int  `json:"allowed_cpus,omitempty"`
	Why         string `json:"why,omitempty"` // why this source was chosen and not one of higher priority
}

// Store describes the server of a store other than Redis, such as etcd.
type Store struct {
	Name   string `json:"name"` // as strategies name it: etcd
	Server Redis  `json:"server"`
	// RequestP50 and RequestP99 are percentiles, in nanoseconds, of the latency of the store's smallest request. The
	// requests are sent one after the other on one connection, like PING in Baselines.
	RequestP50 *int64 `json:"request_p50_ns"`
	RequestP99 *int64 `json:"request_p99_ns"`
}

// Release returns the version, preceded by the server's name unless it is Redis: "8.0.3", "valkey 9.1.2".
func (r Redis) Release() string {
	if r.Name == "" || r.Name == "redis" {
		return r.Version
	}
	return strings.TrimSpace(r.Name + " " + r.Version)
}

// Strategy describes a measured strategy: its store, its claims and its capacity.
type Strategy struct {
	Name  string `json:"name"`
	Store string `json:"store,omitempty"` // the store that has its locks; absent for Redis
	// Durability states which locks a crash of the store may lose, with the values of Redis.Durability.
	Durability string   `json:"durability,omitempty"`
	Summary    string   `json:"summary"`
	Claims     []string `json:"claims"`
	Caveat     string   `json:"caveat,omitempty"` // not empty: the lock is unsafe by design
	Capacity   int      `json:"capacity"`         // 0: unlimited
	Instances  int      `json:"instances"`        // application instances that it used
	BlackBox   bool     `json:"black_box,omitempty"`
}

// LeftOut is a strategy that was requested but did not run, with the reason.
type LeftOut struct {
	Strategy string `json:"strategy"`
	Why      Remark `json:"why"`
}

// Baselines are limits that were measured on this machine in the same session: no lock can be faster. If a lock is
// nearly as fast, its figures measure the generator and not the lock.
type Baselines struct {
	NoopPerSecond  float64 `json:"noop_per_second"`  // acquisitions/s of a lock that does nothing
	LocalPerSecond float64 `json:"local_per_second"` // acquisitions/s of an in-process FIFO mutex
	PingP50        *int64  `json:"ping_p50_ns"`      // sequential PING, one connection
	PingP99        *int64  `json:"ping_p99_ns"`
	EvalP50        *int64  `json:"evalsha_p50_ns"` // sequential EVALSHA of a script with one GET
	EvalP99        *int64  `json:"evalsha_p99_ns"`
}

// Shared is set if other processes measured at the same time, on the same keys of the same servers. A report that has
// not been merged then describes only the part of the load that one process made.
type Shared struct {
	Session   string   `json:"session"`
	Generator int      `json:"generator"`     // the index of this one
	RedisRuns []string `json:"redis_run_ids"` // INFO's run_id of each node; "" if not known
	// UncertaintyNS is the uncertainty of the common start times in nanoseconds. It is half of a round trip to the server.
	// If there are several runs, it is the largest of their values.
	UncertaintyNS int64 `json:"start_uncertainty_ns"`
}

// GeneratorPart describes one generator of a merged report: its build, its machine and how many acquisitions it made.
type GeneratorPart struct {
	Generator     string      `json:"generator"`
	UncertaintyNS int64       `json:"start_uncertainty_ns"` // see Shared
	Tool          Tool        `json:"tool"`
	Environment   Environment `json:"environment"`
	Baselines     *Baselines  `json:"baselines,omitempty"`
	Seed          int64       `json:"seed"`
	Started       time.Time   `json:"started"`
	Finished      time.Time   `json:"finished"`
	Acquisitions  int64       `json:"acquisitions"` // in the windows of all runs
}
