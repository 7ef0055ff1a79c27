package zookeeper

import (
	"context"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/strategies"
	lock "github.com/lockbench/lockbench/strategies/zookeeper"
)

// A server takes a second to start: the tests share one as far as they can.
var shared = sync.OnceValues(func() (*Server, error) { return opened(context.Background(), "shared", store.Options{}) })

func TestMain(m *testing.M) {
	drive.ManyAtATime()
	strategies.RegisterStrategy(lock.Strategy()) // a sweep knows what its keys are called
	code := m.Run()
	if os.Getenv(victimEnv) == "" {
		if s, err := shared(); err == nil {
			if err := s.Close(context.Background()); err != nil {
				println(err.Error())
				code = 1
			}
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

func opened(ctx context.Context, runID string, o store.Options) (*Server, error) {
	s, err := Store{}.Open(ctx, runID, o)
	if err != nil {
		return nil, err
	}
	return s.(*Server), nil
}

// common is the shared server.
func common(t *testing.T) *Server {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// open opens what the options name and closes it when the test ends.
func open(t *testing.T, o store.Options) *Server {
	t.Helper()
	s, err := opened(t.Context(), store.NewRunID(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// users are options that name a server as a user's.
func users(s *Server) store.Options { return store.Options{Address: "zk://" + s.Describe().Address} }
