package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
	lock "github.com/lockbench/lockbench/strategies/zookeeper"
)

// TestEnsemble reads the roles of three members. Then it kills two of them: Open must fail quickly with an error that
// says that there is no quorum.
func TestEnsemble(t *testing.T) {
	t.Parallel()
	s := open(t, store.Options{Topology: "zookeeper:3"})
	about := s.Describe()
	if about.Topology != "zookeeper:3" || len(about.Nodes) != 3 || about.Mode != "ensemble" {
		t.Fatalf("it is %+v", about)
	}
	reading, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]int{}
	for _, node := range reading.Nodes {
		roles[node.Role]++
	}
	if roles["leader"] != 1 || roles["follower"] != 2 || reading.CPU == nil || reading.Commands[packets] == 0 {
		t.Errorf("roles %v of %+v", roles, reading)
	}

	if err := launch.Each(t.Context(), s.Own[:2], launch.Started.Kill); err != nil { // no quorum is left
		t.Fatal(err)
	}
	poll.Until(t, "the third notices", func() bool { return s.Ping(t.Context()) != nil })
	ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
	defer cancel()
	_, err = opened(ctx, "lost", store.Options{Address: "zk://" + strings.Join(s.node.Servers, ",")})
	fails(t, err, store.ErrUnreachable, "quorum")
	if _, err := s.Read(t.Context()); err == nil || ctx.Err() != nil {
		t.Errorf("counters were read, or it took too long: %v", err)
	}
	if err := launch.Each(t.Context(), s.Own[:2], launch.Started.Again); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRefused(t *testing.T) {
	s := new(Server)
	for err, want := range map[error]string{
		fmt.Errorf("create: %w", zk.ErrNoAuth): "NOAUTH", zk.ErrAuthFailed: "AUTHFAILED",
		zk.ErrNoNode: "", errors.New("other"): "", gozk.ErrIndeterminate: "",
	} {
		if got := s.Refused(err); got != want || s.Unauthorised(got) != (want != "") {
			t.Errorf("of %v it is %q", err, got)
		}
	}
}

// leaky is a lock whose Acquire leaves another lock held and whose Close does nothing, so that it leaves queue nodes
// and sessions behind.
type leaky struct{ strategies.Locker }

func (l leaky) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	if _, err := l.Locker.Acquire(ctx, key+":forgotten"); err != nil {
		return nil, err
	}
	return l.Locker.Acquire(ctx, key)
}

func (leaky) Close() error { return nil }

// TestLeftovers runs the lock leaky. The run must report the queue nodes and the sessions that it leaves, and must
// remove the nodes.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	s := common(t)
	var inner []strategies.Locker
	info := variant(t).Info()
	info.Keys = append(info.Keys, "{key}:forgotten")
	v := strategies.Unlisted(info, func(c gozk.Config) (leaky, error) {
		l, err := lock.Open(c, lock.Options{})
		inner = append(inner, l)
		return leaky{l}, err
	})
	w := drive.Workload(1)
	w.Clients, w.Instances = 1, 1
	run, err := engine.Job{Strategy: v, Workload: w, Target: s, Session: "deafbeef", Number: 1}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(run.Safety.Leftovers, "\n")
	for _, want := range []string{"key lockbench:{deafbeef:1:0}:forgotten/_c_", "connection "} {
		if !strings.Contains(said, want) {
			t.Errorf("left are %q, without %q", said, want)
		}
	}
	for _, l := range inner {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := s.Leftovers(t.Context(), "deafbeef", ""); err != nil || len(left.Keys) > 0 {
		t.Errorf("after the clean-up there are %q, %v", left, err)
	}
}
