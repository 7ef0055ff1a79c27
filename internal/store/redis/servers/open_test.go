package servers

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/testkit/poll"
)

// brokenDocker is an engine that says it is there and then does nothing.
func brokenDocker(t *testing.T) string {
	t.Helper()
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Api-Version", "1.41")
		switch {
		case strings.HasSuffix(r.URL.Path, "/_ping"), strings.HasSuffix(r.URL.Path, "/info"):
			_, _ = w.Write([]byte("{}"))
		default:
			http.Error(w, `{"message":"out of order"}`, http.StatusInternalServerError)
		}
	}))
	t.Cleanup(engine.Close)
	return "DOCKER_HOST=tcp://" + engine.Listener.Addr().String()
}

func TestAutoFallsBackToProcess(t *testing.T) {
	v, said := tryVictim(t, "auto", brokenDocker(t), "LOCKBENCH_REDIS_IMAGE=")
	if v.addr == "" || !up(t, v.addr) {
		t.Fatalf("no answer: %s", said)
	}
	if !strings.Contains(said, "Source:process") || !strings.Contains(said, "out of order") {
		t.Errorf("the description says neither process nor why: %s", said)
	}
	v.kill()
	launch.SweepMachine(t.Context())
}

// Another image than the one asked for, or none, would be another measurement.
func TestAutoKeepsToTheImage(t *testing.T) {
	v, said := tryVictim(t, "auto", brokenDocker(t), "LOCKBENCH_REDIS_IMAGE=mine:1")
	if v.addr != "" || !strings.Contains(said, "mine:1") {
		t.Errorf("it opened %q: %s", v.addr, said)
	}
}

func TestAutoWithNothing(t *testing.T) {
	v, said := tryVictim(t, "auto", brokenDocker(t), "LOCKBENCH_REDIS_IMAGE=", "PATH=/nowhere")
	if v.addr != "" {
		t.Fatalf("it opened %s", v.addr)
	}
	for _, way := range []string{"Redis unreachable", "--redis redis://", "install redis-server", "start Docker"} {
		if !strings.Contains(said, way) {
			t.Errorf("it does not say %q: %s", way, said)
		}
	}
}

func TestProcessWithoutBinary(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Open(t.Context(), Options{Address: "process"})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "redis-server") {
		t.Errorf("%v, want ErrUnreachable and the name of what is missing", err)
	}
}

// A start that fails says what Redis said, and leaves nothing.
func TestFailedStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Options{RunID: "test"}.startProcess(t.Context(), launch.FreePort, nil, "--no-such-option", "yes")
	if err == nil || !strings.Contains(err.Error(), "Bad directive") {
		t.Errorf("%v: it does not carry Redis's last words", err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("leftovers: %v", left)
	}
}

func TestInterruptedStart(t *testing.T) {
	for _, source := range []string{"process", "container"} {
		t.Run(source, func(t *testing.T) {
			if source == "container" {
				needDocker(t)
			}
			t.Setenv("TMPDIR", t.TempDir())
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := Open(ctx, Options{Address: source}); err == nil {
				t.Error("it opened with a context that had ended")
			}
			if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
				t.Errorf("leftovers: %v", left)
			}
		})
	}
}

// However late the interruption comes, no container stays behind.
func TestInterruptedContainer(t *testing.T) {
	needDocker(t)
	engine, err := testcontainers.NewDockerClientWithOpts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	const runID = "interrupted"
	for _, after := range []time.Duration{100, 200, 300, 400} {
		ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
		s, err := Open(ctx, Options{Address: "container", RunID: runID})
		cancel()
		if err == nil {
			if err := s.Close(ctx); err != nil {
				t.Error(err)
			}
		}
	}
	const label = "lockbench.owner"
	list, err := engine.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", label)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		if strings.Contains(c.Labels[label], runID) {
			t.Errorf("left behind: %s", c.Status)
		}
	}
}

// A user's server is the same after as before.
func TestUsersServerIsLeftAlone(t *testing.T) {
	p := process(t)
	s := open(t, Options{Address: "redis://" + p.Addr()})
	if s.Owned() != nil || s.GeneratorCPUs() != nil {
		t.Error("a user's server counts as ours")
	}
	if about := s.Describe(); about.Source != "address" || about.Address != p.Addr() || about.Network != "loopback" {
		t.Errorf("description %+v", about)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !up(t, p.Addr()) {
		t.Fatal("it was stopped")
	}
	again := open(t, Options{Address: p.Addr(), RunID: "again"})
	poll.Until(t, "only the observer is connected", func() bool {
		r, err := again.Read(t.Context())
		return err == nil && r.Clients == 1
	})
	s.nodes = nil // closed above
}
