package goredis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/redis/go-redis/v9/push"

	"github.com/lockbench/lockbench/strategies/goredis"
)

// A client that a lock opens must have every option of the service's client except those that two clients cannot share.
// The test reads the fields of go-redis's types, so it also covers fields that a newer go-redis adds.
func TestDialKeepsOptions(t *testing.T) {
	all := filled(t, reflect.TypeFor[redis.Options]()).(*redis.Options)
	all.MinIdleConns, all.ClientSideCacheStrategy = 1, redis.CSCStrategySharedTracking // there are no others
	client := redis.NewClient(all)
	same(t, "all", client, []string{"PushNotificationProcessor", "ClientSideCache", "ClientSideCacheConfig"})
	for name, options := range map[string]*redis.Options{
		"defaults": {Addr: "127.0.0.1:1"},
		"none": {
			Addr: "127.0.0.1:1", MaxRetries: -1, MinRetryBackoff: -1, MaxRetryBackoff: -1,
			ReadTimeout: -1, WriteTimeout: -2, ConnMaxIdleTime: -1,
		},
	} {
		same(t, name, redis.NewClient(options), []string{"PushNotificationProcessor"})
	}

	ours := []string{"NewClient", "PushNotificationProcessor", "ReadOnly", "RouteByLatency", "RouteRandomly"}
	everything := filled(t, reflect.TypeFor[redis.ClusterOptions]()).(*redis.ClusterOptions)
	everything.NewClient, everything.MinIdleConns = redis.NewClient, 1
	same(t, "all of a cluster", redis.NewClusterClient(everything), ours)
	same(t, "none of a cluster", redis.NewClusterClient(&redis.ClusterOptions{
		MaxRedirects: -1, MaxRetries: -1, MinRetryBackoff: -1, ReadTimeout: -1, WriteTimeout: -2,
	}), []string{"NewClient"})
	same(t, "defaults of a cluster", redis.NewClusterClient(&redis.ClusterOptions{}), []string{"NewClient"})
}

// interfaces contains a value for each option whose type is an interface. nil leaves the option at go-redis's default.
var interfaces = map[string]any{
	"StreamingCredentialsProvider": struct {
		auth.StreamingCredentialsProvider
	}{},
	"Limiter":                   struct{ redis.Limiter }{},
	"PushNotificationProcessor": push.NewProcessor(),
	"ClientSideCache":           redis.NewLocalCache(redis.ClientSideCacheConfig{}),
	"ShardPicker":               nil, // go-redis's own
}

// errNone is the error of every function that the helper filled puts into options.
var errNone = errors.New("of no use")

// filled returns a pointer to a struct of the given type with a value in each exported field. It fails the test if it
// has no value for a field.
func filled(t *testing.T, options reflect.Type) any {
	t.Helper()
	all := reflect.New(options)
	for i, field := range reflect.VisibleFields(options) {
		if !field.IsExported() {
			continue
		}
		value := all.Elem().FieldByIndex(field.Index)
		switch field.Type.Kind() {
		case reflect.String:
			value.SetString(field.Name)
		case reflect.Bool:
			value.SetBool(true)
		case reflect.Int, reflect.Int64:
			value.SetInt(int64(i + 1000))
		case reflect.Slice:
			value.Set(reflect.Append(value, reflect.ValueOf(field.Name)))
		case reflect.Pointer:
			value.Set(reflect.New(field.Type.Elem()))
		case reflect.Func:
			value.Set(reflect.MakeFunc(field.Type, func([]reflect.Value) (results []reflect.Value) {
				for result := range field.Type.Outs() {
					results = append(results, reflect.Zero(result))
				}
				if last := len(results) - 1; field.Type.Out(last) == reflect.TypeFor[error]() {
					results[last] = reflect.ValueOf(&errNone).Elem()
				}
				return results
			}))
		case reflect.Interface:
			known, ok := interfaces[field.Name]
			if !ok {
				t.Errorf("no value is known for the option %s, a %s", field.Name, field.Type)
			} else if known != nil {
				value.Set(reflect.ValueOf(known))
			}
		default:
			t.Errorf("no value is known for the option %s, a %s", field.Name, field.Type)
		}
	}
	return all.Interface()
}

// same compares the options of client with those of the client that Dial opens for it. The options whose names are in
// ours must differ, and all others must be equal.
func same(t *testing.T, name string, client redis.UniversalClient, ours []string) {
	t.Helper()
	defer func() { _ = client.Close() }()
	dialled := dial(t, client)
	a, b := optionsOf(client), optionsOf(dialled)
	for _, field := range reflect.VisibleFields(a.Type()) {
		if !field.IsExported() {
			continue
		}
		x, y := a.FieldByIndex(field.Index), b.FieldByIndex(field.Index)
		var equal bool
		switch {
		case field.Type.Kind() == reflect.Func:
			equal = x.Pointer() == y.Pointer()
		case field.Type.Kind() == reflect.Interface:
			equal = x.Interface() == y.Interface()
		default:
			equal = reflect.DeepEqual(unsized(x), unsized(y))
		}
		if equal == slices.Contains(ours, field.Name) {
			t.Errorf("%s: %s is %v, but %v in the second client", name, field.Name, x, y)
		}
	}
}

// unsized returns the value of an option. If it is a maintnotifications.Config, it sets MaxWorkers to 0, because
// go-redis derives this field from the pool size.
func unsized(value reflect.Value) any {
	config, ok := reflect.TypeAssert[*maintnotifications.Config](value)
	if !ok || config == nil {
		return value.Interface()
	}
	own := *config
	own.MaxWorkers = 0
	return own
}

func optionsOf(client redis.UniversalClient) reflect.Value {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		return reflect.ValueOf(cluster.Options()).Elem()
	}
	return reflect.ValueOf(client.(*redis.Client).Options()).Elem()
}

func dial(t *testing.T, client redis.UniversalClient) redis.UniversalClient {
	t.Helper()
	node, err := goredis.NodeOf(client)
	if err != nil {
		t.Fatal(err)
	}
	dialled, err := goredis.Dial(node, func(*redis.Options) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dialled.Close() })
	return dialled
}

// logged is a logger for go-redis. It stores all log lines except those with errNone, which clients of earlier tests
// cause.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Printf(_ context.Context, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	if !strings.Contains(line, errNone.Error()) { // of an earlier test's pool, which notices late that it is closed
		l.lines = append(l.lines, line)
	}
}

// In each mode of maintenance notifications, two clients that Dial opens for one client must have separate handlers for
// these notifications. go-redis must neither panic nor log a line.
func TestDialWithNotifications(t *testing.T) { // not parallel: go-redis has one logger
	log := new(logged)
	redis.SetLogger(log)
	processor := push.NewProcessor()
	modes := []maintnotifications.Mode{
		"", maintnotifications.ModeAuto, maintnotifications.ModeEnabled, maintnotifications.ModeDisabled,
	}
	for _, mode := range modes {
		for _, theirs := range []push.NotificationProcessor{nil, processor} {
			options := &redis.Options{Addr: "127.0.0.1:1", PushNotificationProcessor: theirs, MaxActiveConns: 3}
			if mode != "" { // else go-redis's default
				options.MaintNotificationsConfig = &maintnotifications.Config{
					Mode: mode, MaxWorkers: 50,
					HandoffQueueSize: 1000,
				}
			}
			if theirs != nil && mode != maintnotifications.ModeDisabled {
				continue // a processor of their own already has a client's handlers then
			}
			client := redis.NewClient(options)
			defer func() { _ = client.Close() }()
			first := dial(t, client).(*redis.Client).Options()
			second := dial(t, client).(*redis.Client).Options()
			if first.MaintNotificationsConfig.Mode != client.Options().MaintNotificationsConfig.Mode {
				t.Errorf("%s became %s", mode, first.MaintNotificationsConfig.Mode)
			}
			if first.MaintNotificationsConfig == second.MaintNotificationsConfig ||
				first.PushNotificationProcessor == second.PushNotificationProcessor {
				t.Errorf("%s: two clients share their notifications", mode)
			}
		}
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if len(log.lines) > 0 {
		t.Errorf("go-redis logged %q", log.lines)
	}
}

// NodeOf must refuse nil, a Ring and a client of a foreign type. The error must name the type, and Dial must return the
// same error.
func TestNodeOfRefuses(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer func() { _ = ring.Close() }()
	for _, client := range []redis.UniversalClient{nil, ring, struct{ redis.UniversalClient }{}} {
		_, err := goredis.NodeOf(client)
		if err == nil || client != nil && !strings.Contains(err.Error(), fmt.Sprintf("not a %T", client)) {
			t.Errorf("NodeOf(%T): %v, want an error that names the type", client, err)
		}
		_, other := goredis.Dial(goredis.Node{Client: client}, func(*redis.Options) {})
		if fmt.Sprint(other) != fmt.Sprint(err) {
			t.Errorf("Dial refuses %T with: %v", client, other)
		}
	}
}

// A client that uses the URL from Reach must connect to the node's server, with the same user and password. Some
// libraries decode a URL by RFC 3986 and others as a form, which turns a + into a space.
func TestReachLeadsToTheSameServer(t *testing.T) {
	const odd = "a+b@c/d:e%41 \u00e9?#[]&=;$,'*()!~"
	for _, o := range []redis.UniversalOptions{
		{Addrs: []string{"127.0.0.1:6379"}},
		{Addrs: []string{"[::1]:6379"}, Username: odd, Password: odd, DB: 3},
		{Addrs: []string{"redis.example:6380"}, Password: odd, TLSConfig: &tls.Config{InsecureSkipVerify: true}},
		{Addrs: []string{"/run/a b+c%41/redis"}, Username: odd, Password: odd, DB: 3},
	} {
		r, known := goredis.Node{Options: &o, Files: goredis.Files{CA: "ca"}}.Reach()
		if !known {
			t.Fatalf("%v is not known", o.Addrs)
		}
		got, err := redis.ParseURL(r.URL)
		if err != nil {
			t.Fatalf("%s: %v", r.URL, err)
		}
		if got.Addr != o.Addrs[0] || got.Username != o.Username || got.Password != o.Password || got.DB != o.DB ||
			(got.TLSConfig == nil) != (o.TLSConfig == nil) {
			t.Errorf("%s leads to %s of %q, %q, %d", r.URL, got.Addr, got.Username, got.Password, got.DB)
		}
		if encrypted := o.TLSConfig != nil; r.SkipVerify != encrypted || (r.CA != "") != encrypted {
			t.Errorf("%s: %+v", r.URL, r)
		}
		if o.Password == "" {
			continue
		}
		user, _, _ := strings.Cut(strings.SplitN(r.URL, "//", 2)[1], "@")
		_, password, _ := strings.Cut(user, ":")
		if form, err := url.QueryUnescape(password); form != odd || err != nil {
			t.Errorf("%s: as a form the password is %q, %v", r.URL, form, err)
		}
	}
	if _, known := (goredis.Node{Options: &redis.UniversalOptions{Addrs: []string{"a:1", "b:1"}}}).Reach(); known {
		t.Error("Reach accepted options with two servers")
	}
}
