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

// common is the shared server.
func common(t *testing.T) *Server { return shared.Get(t).(*Server) }

// open opens the servers that the options describe, and closes them when the test ends.
func open(t *testing.T, o store.Options) *Server { return drive.Open(t, Store(), o).(*Server) }

func opened(ctx context.Context, runID string, o store.Options) (*Server, error) {
	s, err := Store().Open(ctx, runID, o)
	if err != nil {
		return nil, err
	}
	return s.(*Server), nil
}

// connect opens a session as a user would, which ends with the test.
func connect(t *testing.T, node gozk.Node) *gozk.Session {
	t.Helper()
	session, err := node.Connect(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

// fails expects an error of this kind whose text contains said and no password.
func fails(t *testing.T, err, kind error, said string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), said) {
		t.Errorf("error %v, want %q with %q", err, kind, said)
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("a password is in %v", err)
	}
}

// variant is the lock that the tests drive.
func variant(t *testing.T) strategies.Variant {
	t.Helper()
	v, err := lock.Strategy().Variant(nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// run acquires the lock fifty times, after the fault if change sets one.
func run(t *testing.T, s *Server, change func(*workloads.Spec)) *results.Run {
	t.Helper()
	w := drive.Workload(50)
	if change != nil {
		change(&w)
	}
	return drive.Run(t, s, store.NewRunID(), variant(t), w)
}
