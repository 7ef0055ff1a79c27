package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
)

// A user may give the Sentinels of a primary instead of its address:
//
//	redis+sentinel://[user:password@]host[:port],host[:port]/primary[/db]
//
// or in go-redis's form, redis://host:port/db?master_name=primary&addr=host:port. The user and the password are those
// of the primary. The options sentinel_username and sentinel_password set the user and the password of the Sentinels.
// lockbench queries the Sentinels for the primary each time it dials, so a client that dials after a failover reaches
// the new primary, as in a service.

// sentinels are the Sentinels that watch a primary and know its address.
type sentinels struct {
	addrs   []string
	primary string
	options redis.Options // user, password and TLS of every Sentinel

	mu    sync.Mutex
	found string
	at    time.Time
}

const (
	sentinelPort = "26379"
	// sentinelPatience limits the time for one Sentinel's reply.
	sentinelPatience = time.Second
	// sentinelMemory is how long a Sentinel's reply is cached. Without the cache, hundreds of concurrent dials would each
	// query a Sentinel.
	sentinelMemory = 100 * time.Millisecond
)

// sentinelSchemes maps the schemes of Sentinel addresses to the scheme of the primary.
var sentinelSchemes = map[string]string{"redis+sentinel": "redis", "rediss+sentinel": "rediss"}

// parseSentinels converts a Sentinel address to the connection options of the primary, without the primary's address.
// found is nil if the address does not name Sentinels.
func parseSentinels(address string) (options *redis.UniversalOptions, found *sentinels, err error) {
	scheme, rest, _ := strings.Cut(address, "://")
	data, named := sentinelSchemes[scheme]
	if named {
		first, others := hosts(rest)
		u, err := url.Parse(data + "://" + first)
		if err != nil {
			return nil, nil, errSentinel
		}
		primary, db, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
		query := u.Query()
		if primary == "" || strings.Contains(u.Path, "@") || u.Fragment != "" || query.Has("master_name") {
			return nil, nil, errSentinel
		}
		query.Set("master_name", primary)
		for _, host := range others {
			query.Add("addr", withPort(host))
		}
		u.Host, u.Path, u.RawQuery = withPort(u.Host), "/"+db, query.Encode()
		address = u.String()
	}
	u, err := url.Parse(address)
	if err != nil || !u.Query().Has("master_name") {
		return nil, nil, nil
	}
	known := slices.Concat(plainQuery, strings.Fields("master_name addr sentinel_username sentinel_password"))
	if err := checkQuery(u.Query(), known); err != nil {
		return nil, nil, err
	}
	parsed, err := redis.ParseFailoverURL(address)
	if err != nil || parsed.MasterName == "" || strings.Contains(u.Path, "@") || u.Fragment != "" {
		return nil, nil, errSentinel // go-redis's error repeats what may be a password
	}
	if parsed.TLSConfig != nil {
		parsed.TLSConfig.ServerName = "" // ParseFailoverURL set the name of the first Sentinel
	}
	options = &redis.UniversalOptions{
		Addrs: []string{""}, DB: parsed.DB, Protocol: parsed.Protocol,
		Username: parsed.Username, Password: parsed.Password, TLSConfig: parsed.TLSConfig,
	}
	return options, &sentinels{addrs: parsed.SentinelAddrs, primary: parsed.MasterName, options: redis.Options{
		Username: parsed.SentinelUsername, Password: parsed.SentinelPassword,
		DialTimeout: sentinelPatience, ReadTimeout: sentinelPatience, ContextTimeoutEnabled: true,
		MaxRetries: -1, DialerRetries: 1, DisableIdentity: true, PoolSize: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}}, nil
}

// errSentinel reports a malformed Sentinel address. It does not quote the address, because any part of it may be a
// password.
var errSentinel = errors.New("--redis must be " +
	"redis[s]+sentinel://[user:password@]host[:port],host[:port]/primary[/db] for a primary that Sentinels watch; " +
	"percent-encode special characters of a password")

// hosts removes all hosts except the first from an address. It returns the shortened address, which net/url can parse,
// and the removed hosts. An @ or / in a password must be percent-encoded.
func hosts(rest string) (first string, others []string) {
	before, after := rest, ""
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		before, after = rest[:end], rest[end:]
	}
	all := strings.Split(before, ",")
	return all[0] + after, all[1:]
}

// withPort adds the default port of a Sentinel to a host without a port.
func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), sentinelPort)
}

// where returns the address of the primary according to the first Sentinel that knows it.
func (s *sentinels) where(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found != "" && time.Since(s.at) < sentinelMemory {
		return s.found, nil
	}
	var problems []error
	for _, addr := range s.addrs {
		found, err := s.ask(ctx, addr)
		if err == nil {
			s.found, s.at = found, time.Now()
			return found, nil
		}
		problems = append(problems, fmt.Errorf("query the Sentinel at %s for the primary %s: %w", addr,
			untrusted.Printable(s.primary), err))
	}
	return "", errors.Join(problems...)
}

// ask asks the Sentinel at addr for the primary's address.
func (s *sentinels) ask(ctx context.Context, addr string) (string, error) {
	options := s.options
	options.Addr = addr
	client := redis.NewSentinelClient(&options)
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, sentinelPatience)
	defer cancel()
	at, err := client.GetMasterAddrByName(ctx, s.primary).Result()
	if errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("%w: it watches %s", errNotWatched, s.watched(ctx, client))
	}
	if err != nil {
		return "", err
	}
	if len(at) != 2 {
		return "", fmt.Errorf("the Sentinel replied with %d words instead of a host and a port", len(at))
	}
	return net.JoinHostPort(at[0], at[1]), nil
}

// errNotWatched reports that a Sentinel does not watch a primary with the given name.
var errNotWatched = errors.New("the Sentinel watches no primary with that name")

// watched lists the names of the primaries that a Sentinel watches.
func (s *sentinels) watched(ctx context.Context, client *redis.SentinelClient) string {
	all, _ := client.Masters(ctx).Result() // the user may lack the right to list them
	var names []string
	for _, one := range all {
		fields, _ := one.(map[any]any)
		if name, is := fields["name"].(string); is {
			names = append(names, untrusted.Printable(name))
			continue
		}
		pairs, _ := one.([]any)
		for i := 0; i+1 < len(pairs); i += 2 {
			if name, is := pairs[i+1].(string); is && pairs[i] == "name" {
				names = append(names, untrusted.Printable(name))
			}
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none that it reports")
}

// through wraps a dialer so that it dials the primary's address from the Sentinels instead of the given address.
// Without Sentinels it returns the dialer unchanged.
func (s *sentinels) through(dial store.Dialer) store.Dialer {
	if s == nil {
		return dial
	}
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		addr, err := s.where(ctx)
		if err != nil {
			return nil, err
		}
		return dial(ctx, network, addr)
	}
}
