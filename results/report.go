// Package results holds the Report, the plain versioned document of what was
// measured, and the ways to show it. It never talks to Redis.
//
// A figure that could not be had is a nil pointer, null in JSON and "–" in
// tables; it is never 0.
package results

import (
	"strings"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// Schema names the version of the document. It changes when a field changes
// its meaning or goes away.
const Schema = "lockbench/report/1"

// Report is everything one call of lockbench measured.
type Report struct {
	Schema   string    `json:"schema"`
	Tool     Tool      `json:"tool"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`

	Environment Environment `json:"environment"`
	Redis       Redis       `json:"redis"`
	// Stores are the others that strategies locked in.
	Stores   []Store        `json:"stores,omitempty"`
	Workload workloads.Spec `json:"workload"` // of a sweep the first
	// Points are the workloads of a sweep; each run names its own by its label.
	Points     []workloads.Point `json:"points,omitempty"`
	Rounds     int               `json:"rounds"` // runs of each strategy that were asked for
	Strategies []Strategy        `json:"strategies"`
	LeftOut    []LeftOut         `json:"left_out,omitempty"`
	Baselines  *Baselines        `json:"floors,omitempty"`
	Runs       []Run             `json:"runs"`

	// Server is what Redis counted from before the first connection's first
	// command to after the last run's clean-up, baselines and preparation included:
	// what an outside observer's INFO before and after would show.
	Server *ServerDelta `json:"server_total,omitempty"`

	Shared     *Shared         `json:"shared,omitempty"` // with other generators
	Generators []GeneratorPart `json:"parts,omitempty"`  // of a merged report: its generators

	Thresholds []Verdict `json:"thresholds,omitempty"` // that it was held against, see Judge

	Warnings    []string `json:"warnings,omitempty"`
	Interrupted bool     `json:"interrupted,omitempty"` // stopped by the user: runs are missing or partial
	Error       string   `json:"error,omitempty"`       // what ended it early
	Unreachable bool     `json:"unreachable,omitempty"` // Redis went away during it
}

// WorkloadOf is the workload of a run.
func (r *Report) WorkloadOf(run Run) workloads.Spec {
	for _, point := range r.Points {
		if point.Label == run.Point {
			return point.Workload
		}
	}
	return r.Workload
}

// ServerOf is the server that a run locked on.
func (r *Report) ServerOf(run Run) Redis {
	store := ""
	for _, s := range r.Strategies {
		if s.Name == run.Strategy {
			store = s.Store
		}
	}
	for _, s := range r.Stores {
		if store != "" && s.Name == store || s.Server.Label != "" && strings.HasSuffix(run.Point, s.Server.Label) {
			return s.Server
		}
	}
	return r.Redis
}

// Tool is the build that measured.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"` // of the sources it was built from
	Branch  string `json:"branch,omitempty"` // as the CI system names it
}

// Environment is the machine of the generator.
type Environment struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Kernel     string `json:"kernel,omitempty"`
	CPUModel   string `json:"cpu_model,omitempty"`
	CPUs       int    `json:"cpus"`       // that the machine has
	GoMaxProcs int    `json:"gomaxprocs"` // that the generator used
	Go         string `json:"go"`
	PinnedCPUs []int  `json:"pinned_cpus,omitempty"` // of the generator, with --pin
	// AllowedCPUs are those that the generator's process may run on; empty where the
	// system does not say.
	AllowedCPUs     []int `json:"allowed_cpus,omitempty"`
	TimerOvershoot  int64 `json:"timer_overshoot_ns"`  // median lateness of a 50 µs sleep on the idle machine
	ClockResolution int64 `json:"clock_resolution_ns"` // smallest step seen between two clock readings
}

// Redis is the server of the run, without any secret.
type Redis struct {
	// Label is that of the runs on it, where several servers were compared: server=NAME.
	Label    string   `json:"label,omitempty"`
	Source   string   `json:"source"`             // container, process or address
	Address  string   `json:"address"`            // host:port, or unix socket, of the first node
	Topology string   `json:"topology,omitempty"` // single, nodes:N, replicas:N or cluster:N
	Nodes    []string `json:"nodes,omitempty"`    // the addresses of all nodes, if there are several; primaries first
	// Name is the server's own: redis, valkey, keydb, dragonfly; empty where it does not
	// say, as in reports of earlier versions.
	Name      string `json:"name,omitempty"`
	Version   string `json:"version,omitempty"`
	Mode      string `json:"mode,omitempty"`       // standalone, cluster, sentinel
	Network   string `json:"network,omitempty"`    // loopback, host, published port, remote
	Protocol  int    `json:"protocol,omitempty"`   // RESP version of the connections
	IOThreads *int   `json:"io_threads,omitempty"` // of the first node, the main one included; absent where it does not say
	Image     string `json:"image,omitempty"`
	TLS       bool   `json:"tls,omitempty"`
	// Durability is what a crash of it may lose: memory (everything), every second, fsync
	// (nothing that it has confirmed); absent where that is not known.
	Durability string `json:"durability,omitempty"`
	PinnedCPUs []int  `json:"pinned_cpus,omitempty"`
	// AllowedCPUs are those of this machine that its processes may run on; empty where
	// that is not known, as of another machine.
	AllowedCPUs []int `json:"allowed_cpus,omitempty"`
	// IdleCPU is its processor time, in percent of a core, while other stores were driven.
	IdleCPU *float64 `json:"idle_cpu_percent,omitempty"`
	Why     string   `json:"why,omitempty"` // why this source was chosen and the earlier ones were not
}

// ServerLabel begins the label of a Redis server that is compared with others.
const ServerLabel = "server="

// CutServer parts the label of a point from the name of the server; that is "" where one
// server alone was measured.
func CutServer(label string) (workload, server string) {
	workload, server, _ = strings.Cut(label, ServerLabel)
	return strings.TrimSpace(workload), server
}

// Store is one beside Redis, or a further Redis that is compared with the first.
type Store struct {
	Name   string `json:"name"` // as strategies have it: etcd
	Server Redis  `json:"server"`
	// RequestP50 and RequestP99 are of its least request, one after the other on one
	// connection, as Baselines has them of Redis.
	RequestP50 *int64 `json:"request_p50_ns"`
	RequestP99 *int64 `json:"request_p99_ns"`
}

// Release is the version, of what is not Redis with its name: "8.0.3", "valkey 9.1.2".
func (r Redis) Release() string {
	if r.Name == "" || r.Name == "redis" {
		return r.Version
	}
	return strings.TrimSpace(r.Name + " " + r.Version)
}

// Strategy is what a measured strategy claims.
type Strategy struct {
	Name  string `json:"name"`
	Store string `json:"store,omitempty"` // where it locks; absent for Redis
	// Durability is what a crash of the store may lose of its locks, as Redis.Durability.
	Durability string   `json:"durability,omitempty"`
	Summary    string   `json:"summary"`
	Claims     []string `json:"claims"`
	Caveat     string   `json:"caveat,omitempty"` // not empty: unsafe by design
	Capacity   int      `json:"capacity"`         // 0: unlimited
	Instances  int      `json:"instances"`        // that it ran over
	BlackBox   bool     `json:"black_box,omitempty"`
}

// LeftOut is a strategy that was asked for and not run, with the reason.
type LeftOut struct {
	Strategy string `json:"strategy"`
	Why      string `json:"why"`
}

// Baselines are what this machine could do at best in the same session: no lock
// can be faster than these, and near them the generator is what is measured.
type Baselines struct {
	NoopPerSecond  float64 `json:"noop_per_second"`  // acquisitions/s of a lock that does nothing
	LocalPerSecond float64 `json:"local_per_second"` // acquisitions/s of an in-process FIFO mutex
	PingP50        *int64  `json:"ping_p50_ns"`      // sequential PING, one connection
	PingP99        *int64  `json:"ping_p99_ns"`
	EvalP50        *int64  `json:"evalsha_p50_ns"` // sequential EVALSHA of a script with one GET
	EvalP99        *int64  `json:"evalsha_p99_ns"`
}
