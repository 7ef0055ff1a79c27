package servers

import (
	"errors"
	"net"
	"net/url"
	"slices"
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
	// AllowFaults permits faults on a user's servers.
	AllowFaults bool
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
		var program error
		if o.Program != "" {
			_, program = lookProgram(o.Program)
		}
		return errors.Join(program, topology)
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
		problems = append(problems, errors.New("--pin needs a Redis that lockbench starts itself: "+
			"it does not move a server of yours to other CPUs"))
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

// errAddress never repeats the given text: if the text cannot be parsed, any part of it may be a
// password.
var errAddress = errors.New("--redis must be auto, container, process, host:port, " +
	"redis[s]://[user:password@]host:port[/db] or " +
	"unix://[user:password@]/path[?db=N]; percent-encode special characters of a password")

// trust adds the certificates of a PEM file to the system's for a rediss:// address.
func trust(options *redis.UniversalOptions, caFile string) error {
	if options.TLSConfig == nil {
		return errors.New("--ca-file is for rediss:// addresses")
	}
	return store.Trust(options.TLSConfig, caFile)
}

// parseAddress converts a user's address to connection options: host, user, database and TLS.
func parseAddress(address string) (*redis.UniversalOptions, error) {
	if !strings.Contains(address, "://") {
		return plainAddress(address)
	}
	u, err := url.Parse(address)
	// An "@" after the host, or a fragment, means a password that was cut at a "/" or "#".
	if err != nil || strings.Contains(u.Path, "@") || u.Fragment != "" {
		return nil, errAddress
	}
	for option := range u.Query() {
		if !slices.Contains([]string{"db", "protocol", "skip_verify"}, option) {
			return nil, errors.New("--redis takes the options db, protocol and skip_verify, no others: " +
				"pools and time-outs are lockbench's own")
		}
	}
	parsed, err := redis.ParseURL(address)
	if err != nil {
		return nil, errAddress
	}
	return &redis.UniversalOptions{
		Addrs: []string{parsed.Addr}, DB: parsed.DB, Protocol: parsed.Protocol,
		Username: parsed.Username, Password: parsed.Password, TLSConfig: parsed.TLSConfig,
	}, nil
}

// usualPort is Redis's.
const usualPort = "6379"

func plainAddress(address string) (*redis.UniversalOptions, error) {
	bare := address == "localhost" || net.ParseIP(address) != nil
	if bare || strings.Contains(address, ".") && !strings.Contains(address, ":") { // any other word is a typing error
		address = net.JoinHostPort(address, usualPort)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" || strings.ContainsAny(address, "@/ ") {
		return nil, errAddress
	}
	return &redis.UniversalOptions{Addrs: []string{net.JoinHostPort(host, port)}}, nil
}
