package servers

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/store"
)

// errAddress never repeats the given text: if the text cannot be parsed, any part of it may be a
// password.
var errAddress = errors.New("--redis must be auto, container, process, host:port, redis[s]://[user:password@]host:port[/db] " +
	"or unix://[user:password@]/path[?db=N]; percent-encode special characters of a password")

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
			return nil, errors.New("--redis takes the options db, protocol and skip_verify, no others: pools and time-outs are lockbench's own")
		}
	}
	parsed, err := redis.ParseURL(address)
	if err != nil {
		return nil, errAddress
	}
	return &redis.UniversalOptions{
		Addrs: []string{parsed.Addr}, DB: parsed.DB, Protocol: parsed.Protocol,
		Username: parsed.Username, Password: parsed.Password, TLSConfig: minimumTLS(parsed.TLSConfig),
	}, nil
}

func minimumTLS(config *tls.Config) *tls.Config {
	if config != nil {
		config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	}
	return config
}

func plainAddress(address string) (*redis.UniversalOptions, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" || strings.ContainsAny(address, "@/ ") {
		return nil, errAddress
	}
	return &redis.UniversalOptions{Addrs: []string{net.JoinHostPort(host, port)}}, nil
}
