package zookeeper

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
	lock "github.com/lockbench/lockbench/strategies/zookeeper"
	"github.com/lockbench/lockbench/workloads"
)

var shared = drive.Share(Store())

func TestMain(m *testing.M) {
	strategies.RegisterStrategy(lock.Strategy()) // so that a sweep recognises its keys
	shared.Main(m)
}

// common returns the server that the tests of this package share.
func common(t *testing.T) *Server { return shared.Get(t).(*Server) }

func open(t *testing.T, o store.Options) *Server { return drive.Open(t, Store(), o).(*Server) }

func opened(ctx context.Context, runID string, o store.Options) (*Server, error) {
	s, err := Store().Open(ctx, runID, o)
	if err != nil {
		return nil, err
	}
	return s.(*Server), nil
}

// connect opens a ZooKeeper session as a client other than lockbench would. The session ends with the test.
func connect(t *testing.T, node gozk.Node) *gozk.Session {
	t.Helper()
	session, err := node.Connect(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

// fails reports a test failure unless err wraps kind. The text of err must contain `said` and no password.
func fails(t *testing.T, err, kind error, said string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), said) {
		t.Errorf("error %v, want %q with %q", err, kind, said)
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("a password is in %v", err)
	}
}

func variant(t *testing.T) strategies.Variant {
	t.Helper()
	v, err := lock.Strategy().Variant(nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// run measures 50 acquisitions of the ZooKeeper lock. change may edit the workload, for example to add a fault.
func run(t *testing.T, s *Server, change func(*workloads.Spec)) *results.Run {
	t.Helper()
	w := drive.Workload(50)
	if change != nil {
		change(&w)
	}
	return drive.Run(t, s, store.NewRunID(), variant(t), w)
}
