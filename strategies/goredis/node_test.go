package goredis_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/goredis"
)

// A connection that a lock dials for itself has the options of the client it was given:
// a second client made of them ends up with the same.
func TestNodeOfKeepsOptions(t *testing.T) {
	for name, options := range map[string]*redis.Options{
		"defaults": {Addr: "127.0.0.1:1"},
		"none of everything": {
			Addr: "127.0.0.1:1", MaxRetries: -1, MinRetryBackoff: -1, MaxRetryBackoff: -1,
			ReadTimeout: -1, WriteTimeout: -2, DialTimeout: time.Second,
		},
		"all else": {
			Addr: "/tmp/redis.sock", DB: 3, Username: "user", Password: "secret", ClientName: "name", Protocol: 2,
			ReadTimeout: time.Second, WriteTimeout: 2 * time.Second, PoolSize: 7, MaxActiveConns: 9, ContextTimeoutEnabled: true,
		},
	} {
		client := redis.NewClient(options)
		defer func() { _ = client.Close() }()
		node, err := goredis.NodeOf(client)
		if err != nil {
			t.Fatal(err)
		}
		dialled := node.Dial(func(*redis.UniversalOptions) {}).(*redis.Client)
		defer func() { _ = dialled.Close() }()
		differs(t, name, *client.Options(), *dialled.Options())
	}
	cluster := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"127.0.0.1:1", "127.0.0.1:2"}, MaxRedirects: -1, MaxRetries: -1, ReadTimeout: -1, Password: "secret",
	})
	defer func() { _ = cluster.Close() }()
	node, err := goredis.NodeOf(cluster)
	if err != nil {
		t.Fatal(err)
	}
	dialled := node.Dial(func(*redis.UniversalOptions) {}).(*redis.ClusterClient)
	defer func() { _ = dialled.Close() }()
	differs(t, "cluster", *cluster.Options(), *dialled.Options())
}

// differs compares all options that can be compared.
func differs(t *testing.T, name string, one, other any) {
	t.Helper()
	a, b := reflect.ValueOf(one), reflect.ValueOf(other)
	for _, field := range reflect.VisibleFields(a.Type()) {
		if !field.IsExported() || field.Type.Kind() == reflect.Func || field.Type.Kind() == reflect.Pointer || field.Type.Kind() == reflect.Interface {
			continue
		}
		if x, y := a.FieldByIndex(field.Index).Interface(), b.FieldByIndex(field.Index).Interface(); !reflect.DeepEqual(x, y) {
			t.Errorf("%s: %s is %v, and %v at the second client", name, field.Name, x, y)
		}
	}
}

// What no lock can use is refused, by its type.
func TestNodeOfRefuses(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer func() { _ = ring.Close() }()
	for _, client := range []redis.UniversalClient{nil, ring} {
		if _, err := goredis.NodeOf(client); err == nil {
			t.Errorf("%T was taken", client)
		}
	}
}
