package driver

import (
	"encoding/json"
	"time"
)

// Version is the version of the protocol between lockbench and its drivers. Both sides ignore fields that they do not
// know.
const Version = 1

// question is a request: one line that lockbench writes to a driver. The value of Do determines which fields are set.
type question struct {
	ID int64  `json:"id"`
	Do string `json:"do"` // hello, clock, open, run, stop, acquire, cancel, extend, release, close

	Protocol int `json:"protocol,omitempty"` // hello

	Redis      []string `json:"redis,omitempty"`  // open: URLs
	TLSCA      string   `json:"tls_ca,omitempty"` // PEM files for rediss:// URLs, by absolute paths
	TLSCert    string   `json:"tls_cert,omitempty"`
	TLSKey     string   `json:"tls_key,omitempty"`
	SkipVerify bool     `json:"tls_skip_verify,omitempty"`
	ClientName string   `json:"client_name,omitempty"`
	Prefix     string   `json:"prefix,omitempty"`
	Callers    int      `json:"callers,omitempty"` // number of clients

	TTL     int64  `json:"ttl_ms,omitempty"`     // open, extend
	Timeout *int64 `json:"timeout_ns,omitempty"` // run, acquire; nil means no timeout

	Start   int64      `json:"start,omitempty"` // run: by CLOCK_MONOTONIC, ns
	Stop    int64      `json:"stop,omitempty"`
	Clients [][2]int   `json:"clients,omitempty"` // ID, first step
	Keys    []string   `json:"keys,omitempty"`
	Steps   [][3]int64 `json:"steps,omitempty"` // key, hold and think in ns
	Count   bool       `json:"count,omitempty"` // a holder increments the key's counter

	Key   *string `json:"key,omitempty"`   // acquire; may be ""
	Lease int64   `json:"lease,omitempty"` // release, extend
	Call  int64   `json:"call,omitempty"`  // cancel: the ID of acquire, release or extend
}

// answer is a response: one line that a driver writes to lockbench.
type answer struct {
	ID    int64  `json:"id"` // ID of the request
	Error string `json:"error,omitempty"`

	// The following fields belong to the response to hello.
	Protocol int      `json:"protocol,omitempty"`
	Name     string   `json:"name,omitempty"`
	Version  string   `json:"version,omitempty"`
	Runtime  string   `json:"runtime,omitempty"`
	Claims   []string `json:"claims,omitempty"`
	Caveat   string   `json:"caveat,omitempty"`
	Capacity *int     `json:"capacity,omitempty"`
	Nodes    *int     `json:"nodes,omitempty"`
	Keys     []string `json:"keys,omitempty"`
	Keeps    []string `json:"keeps,omitempty"`
	Format   string   `json:"format,omitempty"`
	Counts   bool     `json:"counts,omitempty"`
	Connects []string `json:"connects,omitempty"` // supported kinds other than plain TCP: unix, tls
	MostRuns int      `json:"max_instances,omitempty"`
	Extends  bool     `json:"extends,omitempty"` // the driver can extend leases

	Now int64 `json:"now,omitempty"` // clock

	Cycles []cycle `json:"cycles,omitempty"` // run, at least every 100 ms
	Done   bool    `json:"done,omitempty"`   // run: all clients have stopped

	Lease   int64  `json:"lease,omitempty"` // acquire
	Token   *int64 `json:"token,omitempty"`
	Until   *int64 `json:"until,omitempty"`   // acquire, extend: the end of the lease's validity, by CLOCK_MONOTONIC
	Watched bool   `json:"watched,omitempty"` // acquire: if the lease is lost, the driver sends a second response
	Lost    bool   `json:"lost,omitempty"`    // in that second response
}

// cycle is one cycle of a client. In JSON it is an array of client, key, asked, granted, released, done, token, error,
// valid_until. If the client obtained no lease, granted, released, token and valid_until are null. valid_until may be
// missing.
type cycle struct {
	Client, Key       int
	Asked             int64
	Granted, Released *int64
	Done              int64
	Token             *int64
	Error             *string
	Until             *int64
}

func (c *cycle) UnmarshalJSON(text []byte) error {
	fields := [...]any{&c.Client, &c.Key, &c.Asked, &c.Granted, &c.Released, &c.Done, &c.Token, &c.Error, &c.Until}
	return json.Unmarshal(text, &fields)
}

func (c cycle) MarshalJSON() ([]byte, error) {
	return json.Marshal([...]any{c.Client, c.Key, c.Asked, c.Granted, c.Released, c.Done, c.Token, c.Error, c.Until})
}

// These constants limit the output of a driver: bytes per line, bytes per text, number of keys and nodes, and capacity
// of a lock.
const (
	longestLine = 1 << 20
	longestText = 200
	mostNames   = 20
	mostHolders = 1 << 20
	// mostValid limits how far the end of a lease's validity may lie before or after the cycle of that lease. It detects a
	// driver that reports the end by another clock, such as Unix time.
	mostValid = 24 * time.Hour
)

// These constants limit the time that a driver may take for each step.
const (
	startPatience = 30 * time.Second // to start and to connect: a JVM on a busy machine needs seconds
	runPatience   = 5 * time.Second  // between two reports of a run, and to read a request
	stopPatience  = 10 * time.Second // from the end of a run until the last client has stopped
	closePatience = 2 * time.Second
	// cancelPatience is how long lockbench waits for a call to end after the request cancel. Many libraries cannot cancel
	// a wait.
	cancelPatience = 500 * time.Millisecond
	// overtime is how long a wait may continue after its timeout before lockbench cancels it. It exceeds the longest wait
	// of any check, so that a check detects a library that ignores its timeout.
	overtime = 25 * time.Second
)
