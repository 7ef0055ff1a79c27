package servers

import (
	"cmp"
	"errors"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/store"
)

// Options say where the Redis of a run comes from.
type Options struct {
	// Address is "auto", "container", "process", or where the user's Redis is: a
	// redis://, rediss:// or unix:// URL or host:port, several of them with commas
	// in between.
	Address string
	// Topology is what ParseTopology reads: what to start, or what there must be
	// at the addresses.
	Topology string
	CAFile   string // PEM, to trust for rediss:// beside the system's
	// Image is the container's; "" is what LOCKBENCH_REDIS_IMAGE says, else the
	// best that can be had.
	Image string
	// Durability of what lockbench starts; "" is in memory.
	Durability store.Durability
	Pin        bool // put server and generator on disjoint CPUs
	// Program of processes, a path or a name on PATH; "" is the one of this machine.
	Program string
	RunID   string // marks what belongs to this run
	// Env is what the environment of a redis-server has beside this process's, such as
	// NAME=value; it does not reach containers.
	Env []string
	// Logf is told what happens beside the run; nil is silence.
	Logf func(format string, args ...any)
}

// Validate returns every error that can be told without a look at the servers,
// joined, each naming its flag.
func (o Options) Validate() error {
	_, topology := ParseTopology(o.Topology)
	if o.Started() {
		return topology
	}
	_, addresses := o.addresses()
	return errors.Join(addresses, topology)
}

// Started says whether lockbench starts the Redis itself.
func (o Options) Started() bool {
	switch o.Address {
	case "", "auto", "container", "process":
		return true
	}
	return false
}

// addresses reads where the user's Redis is.
func (o Options) addresses() ([]*redis.UniversalOptions, error) {
	var problems []error
	if o.Pin {
		problems = append(problems, errors.New("--pin needs a Redis that lockbench starts itself: it does not move a server of yours to other CPUs"))
	}
	var addresses []*redis.UniversalOptions
	for address := range strings.SplitSeq(o.Address, ",") {
		at, err := parseAddress(strings.TrimSpace(address))
		if err == nil && o.CAFile != "" {
			err = trust(at, o.CAFile)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		addresses = append(addresses, at)
	}
	return addresses, errors.Join(problems...)
}

func (o Options) logf(format string, args ...any) {
	if o.Logf != nil {
		o.Logf(format, args...)
	}
}

// wantedImage is the image asked for; "" is any.
func (o Options) wantedImage() string { return cmp.Or(o.Image, os.Getenv("LOCKBENCH_REDIS_IMAGE")) }
