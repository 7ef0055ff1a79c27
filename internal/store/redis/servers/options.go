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
	// Address is "auto", "container", "process", or the user's Redis: a redis://, rediss:// or unix://
	// URL, or host:port. Several addresses are separated by commas.
	Address string
	// Topology, in the form of ParseTopology, is what to start, or what to expect at the addresses.
	Topology string
	CAFile   string // PEM; trusted for rediss:// in addition to the system's
	// Image is the container's; "" means LOCKBENCH_REDIS_IMAGE, or else the best available image.
	Image string
	// Durability of the servers that lockbench starts; "" means in memory.
	Durability store.Durability
	Pin        bool // put server and generator on disjoint CPUs
	// Program of processes, a path or a name on PATH; "" means this machine's default.
	Program string
	RunID   string // marks what belongs to this run
	// Env adds variables, such as NAME=value, to the environment of a redis-server process. It has no
	// effect in containers.
	Env []string
	// password of the servers that Open starts; "" means none, as StartOwn's have.
	password string
	// Logf reports what happens apart from the run; nil means no reports.
	Logf func(format string, args ...any)
	// Warn reports what a user should know although nothing is wrong; nil means no reports.
	Warn func(warning string)
}

// Validate returns all errors that can be found without the servers, joined; each names its flag.
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

// addresses parses the user's addresses.
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

// wantedImage returns the requested image; "" means any.
func (o Options) wantedImage() string { return cmp.Or(o.Image, os.Getenv(imageVariable)) }
