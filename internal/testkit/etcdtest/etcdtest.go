// Package etcdtest gives tests a real etcd of their own.
package etcdtest

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
)

// Etcd is a running etcd that belongs to one test.
type Etcd struct {
	Endpoints []string // host:port of each member

	t       testing.TB
	members []launch.Started
	tls     *tls.Config
}

// Start starts an etcd with this number of members, and stops it when the test ends. The test fails if there is no
// etcd. LOCKBENCH_ETCD_SERVER names another program than the one on PATH. With a --cert-file clients use TLS.
func Start(t testing.TB, members int, args ...string) *Etcd {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("LOCKBENCH_ETCD_SERVER"), "etcd"))
	if err != nil {
		t.Fatalf("this test needs an etcd (apt-get install etcd-server): %v", err)
	}
	e, scheme := &Etcd{t: t}, "http://"
	if slices.Contains(args, "--cert-file") {
		scheme, e.tls = "https://", &tls.Config{InsecureSkipVerify: true} //nolint:gosec // of a test
	}
	server := func(n int, ports [][]int) launch.Server {
		var peers []string
		for i, of := range ports {
			peers = append(peers, fmt.Sprintf("m%d=http://127.0.0.1:%d", i, of[1]))
		}
		_, peer, _ := strings.Cut(peers[n], "=")
		return launch.Server{
			Name: "etcd", Ready: e.ready,
			Args: func(at launch.Place) []string {
				listen := fmt.Sprintf("%s%s:%d", scheme, at.Bind, at.Port)
				return append([]string{
					"--name", fmt.Sprint("m", n), "--data-dir", "data", "--logger", "zap", "--log-level", "error",
					"--listen-client-urls", listen, "--advertise-client-urls", listen,
					"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
					"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-token", t.Name(),
				}, args...)
			},
		}
	}
	_, e.members, err = launch.Fleet{
		Members: members, Ports: launch.FreePorts(2), Server: server,
		Program: func() (string, error) { return path, nil },
		Taken:   "address already in use",
	}.Start(t.Context(), store.Options{Address: "process"}, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.done(launch.Each(context.Background(), e.members, launch.Started.Close)) })
	for _, m := range e.members {
		e.Endpoints = append(e.Endpoints, m.Addr())
	}
	return e
}

// ready waits until a member answers with the agreement of most members.
func (e *Etcd) ready(ctx context.Context, p launch.Starting) error {
	client, err := clientv3.New(e.config(p.Addr()))
	if err != nil {
		return err
	}
	defer client.Close()
	return launch.Await(ctx, p, launch.LastLine, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := client.Get(ctx, "ready")
		return err
	})
}

// done reports an error.
func (e *Etcd) done(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Error(err)
	}
}

func (e *Etcd) config(endpoints ...string) clientv3.Config {
	return clientv3.Config{
		Endpoints: endpoints, TLS: e.tls, Logger: zap.NewNop(), MaxUnaryRetries: 1, DialTimeout: 5 * time.Second,
	}
}

// Config returns the configuration of a client of all members.
func (e *Etcd) Config() clientv3.Config { return e.config(e.Endpoints...) }

// Client returns a client of all members; it is closed when the test ends.
func (e *Etcd) Client(t testing.TB) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(e.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Pause stops a member with its connections open.
func (e *Etcd) Pause(member int) { e.t.Helper(); e.done(e.members[member].Pause(context.Background())) }

// Resume lets a paused member go on.
func (e *Etcd) Resume(member int) {
	e.t.Helper()
	e.done(e.members[member].Resume(context.Background()))
}
