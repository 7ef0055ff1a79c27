package servers

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch/redisserver"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/strategies"
)

// Options say which Redis a run uses, and how lockbench starts or reaches it.
type Options struct {
	// Address is "auto", "container", "process", or the address of the user's Redis: a redis://, rediss:// or unix:// URL,
	// or host:port. Several addresses are separated by commas. For addresses of Sentinels see type sentinels.
	Address string
	// Topology is the topology to start, or the expected topology at the addresses. ParseTopology defines its form.
	Topology string
	CAFile   string // PEM; trusted for rediss:// in addition to the system's
	// CertFile and KeyFile are a client certificate and its key, both PEM, for rediss:// addresses.
	CertFile, KeyFile string
	Password          string // of the user's servers; applies to addresses without a password
	// Image is the image of the servers that lockbench starts in containers. "" means the image in LOCKBENCH_REDIS_IMAGE,
	// or else the best available image.
	Image string
	// Durability selects which confirmed writes a server that lockbench starts may lose in a crash; "" means in memory.
	Durability store.Durability
	// AllowFaults permits faults on a user's servers.
	AllowFaults bool
	// Program is the program of the servers that lockbench starts as processes. It is a path or a name on PATH; "" means
	// this machine's default.
	Program string
	RunID   string // marks everything that belongs to this run
	// Env adds variables, such as NAME=value, to the environment of a server process. It has no effect in containers.
	Env []string
	// password is the password of the servers that Open starts. "" means none, as for StartOwn.
	password string
	// Logf reports slow steps of the start, such as the pull of an image; nil means no reports.
	Logf func(format string, args ...any)
	// Warn reports conditions that a user should know about and that do not stop the run; nil means no reports.
	Warn func(warning string)
}

// Validate returns all errors that can be detected without the servers, joined. Each error names its flag.
func (o Options) Validate() error {
	asked, topology := ParseTopology(o.Topology)
	if o.Started() {
		var program error
		if o.Program != "" {
			_, program = redisserver.LookProgram(o.Program)
		}
		return errors.Join(program, topology)
	}
	at, _, addresses := o.addresses()
	if addresses == nil && topology == nil {
		topology = asked.checkAddressCount(at)
	}
	return errors.Join(addresses, topology)
}

// Nodes returns the number of nodes in the user's address; 0 if lockbench starts the servers.
func (o Options) Nodes() int {
	if o.Started() {
		return 0
	}
	at, _, _ := o.addresses() // Validate reports the error
	return len(at)
}

// Started reports whether lockbench starts the Redis itself.
func (o Options) Started() bool {
	switch o.Address {
	case "", "auto", "container", "process":
		return true
	}
	return false
}

// Unfit returns the reason why a strategy cannot connect to the addresses; "" if it can, or if Validate rejects the
// addresses.
func (o Options) Unfit(info strategies.Info) string {
	if o.Started() {
		return ""
	}
	addresses, _, err := o.addresses()
	if err != nil {
		return ""
	}
	for _, at := range addresses {
		if why := unreached(info, *at); why != "" {
			return why
		}
	}
	return ""
}

// unreached returns the reason why a strategy cannot connect to an address; "" if it can.
func unreached(info strategies.Info, at redis.UniversalOptions) string {
	if !info.Driver || info.Nodes == 0 {
		return ""
	}
	way, by := "", ""
	switch {
	case store.NetworkTo(at.Addrs[0]) == "unix socket":
		way, by = "unix", "unix socket"
	case at.TLSConfig != nil:
		way, by = "tls", "TLS"
	}
	if way == "" || slices.Contains(info.Connects, way) {
		return ""
	}
	return fmt.Sprintf("its driver does not connect by %s, which --redis requires: give another address, or a driver "+
		"that names %s in connects (docs/DRIVERS.md)", by, way)
}

// addresses parses the user's addresses. For Sentinels, it returns the options of the primary without its address.
func (o Options) addresses() ([]*redis.UniversalOptions, *sentinels, error) {
	var problems []error
	if at, found, err := parseSentinels(strings.TrimSpace(o.Address)); err != nil || found != nil {
		if err == nil {
			err = o.secure(at)
			found.options.TLSConfig = at.TLSConfig
		}
		return []*redis.UniversalOptions{at}, found, errors.Join(append(problems, err)...)
	}
	var addresses []*redis.UniversalOptions
	for address := range strings.SplitSeq(o.Address, ",") {
		at, err := parseAddress(strings.TrimSpace(address))
		if err == nil {
			err = o.secure(at)
		}
		same := func(other *redis.UniversalOptions) bool { return other.Addrs[0] == at.Addrs[0] }
		if err == nil && slices.ContainsFunc(addresses, same) {
			err = fmt.Errorf("--redis names %s twice", at.Addrs[0])
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		addresses = append(addresses, at)
	}
	return addresses, nil, errors.Join(problems...)
}

// secure adds the password and the certificates to the options from an address.
func (o Options) secure(at *redis.UniversalOptions) error {
	at.Password = cmp.Or(at.Password, o.Password)
	var problems []error
	if o.CAFile != "" {
		problems = append(problems, trust(at, o.CAFile))
	}
	switch {
	case o.CertFile == "" && o.KeyFile == "":
	case o.CertFile == "" || o.KeyFile == "":
		problems = append(problems, errors.New("--cert and --key need each other: give both the certificate and its key"))
	case at.TLSConfig == nil:
		problems = append(problems, errors.New("--cert and --key need a rediss:// address"))
	default:
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			problems = append(problems, fmt.Errorf("--cert and --key: %w", err))
		}
		at.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	return errors.Join(problems...)
}

// errAddress reports a malformed address. It does not quote the address, because any part of it may be a password.
var errAddress = errors.New("--redis must be auto, container, process, host:port, " +
	"redis[s]://[user:password@]host:port[/db], " +
	"redis[s]+sentinel://host:port,host:port/primary or " +
	"unix://[user:password@]/path[?db=N]; percent-encode special characters of a password")

// trust makes the connections of a rediss:// address trust the certificates in a PEM file in addition to the system's
// certificates.
func trust(options *redis.UniversalOptions, caFile string) error {
	if options.TLSConfig == nil {
		return errors.New("--ca-file needs a rediss:// address")
	}
	return store.Trust(options.TLSConfig, caFile)
}

// parseAddress converts a user's address to connection options: host, user, database and TLS.
func parseAddress(address string) (*redis.UniversalOptions, error) {
	if !strings.Contains(address, "://") {
		return plainAddress(address)
	}
	u, err := url.Parse(address)
	// An "@" after the host, or a fragment, means that net/url has cut the password at a "/" or "#".
	if err != nil || strings.Contains(u.Path, "@") || u.Fragment != "" {
		return nil, errAddress
	}
	if err := checkQuery(u.Query(), plainQuery); err != nil {
		return nil, err
	}
	if scheme, is := map[string]string{"valkey": "redis", "valkeys": "rediss"}[u.Scheme]; is {
		address = scheme + strings.TrimPrefix(address, u.Scheme)
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

// plainQuery lists the options that the query of an address may contain.
var plainQuery = []string{"db", "protocol", "skip_verify"}

// checkQuery returns an error if the query of an address has an option that known does not contain.
func checkQuery(query url.Values, known []string) error {
	for option := range query {
		if !slices.Contains(known, option) {
			return fmt.Errorf("an address in --redis may have only the options %s: lockbench sets pools and timeouts itself",
				words.And(known))
		}
	}
	return nil
}

// usualPort is the default port of Redis, for addresses without a port.
const usualPort = "6379"

func plainAddress(address string) (*redis.UniversalOptions, error) {
	bare := address == "localhost" || net.ParseIP(address) != nil
	if bare || strings.Contains(address, ".") && !strings.Contains(address, ":") { // any other word is a mistyped keyword
		address = net.JoinHostPort(address, usualPort)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" || strings.ContainsAny(address, "@/ ") {
		return nil, errAddress
	}
	return &redis.UniversalOptions{Addrs: []string{net.JoinHostPort(host, port)}}, nil
}
