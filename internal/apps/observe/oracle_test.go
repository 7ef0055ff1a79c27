package observe

import (
	"bytes"
	"context"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all/goredis"
	"github.com/lockbench/lockbench/workloads"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "program" {
		program(os.Args[2])
		return
	}
	servers.Quiet()
	poll.ManyAtATime()
	m.Run()
}

// monitored calls the function do and returns what the server at address sends to a MONITOR connection during the call.
func monitored(t *testing.T, address string, do func()) []byte {
	t.Helper()
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var captured bytes.Buffer
	over := make(chan struct{})
	if _, err := connection.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	ok := make([]byte, len("+OK\r\n"))
	if _, err := io.ReadFull(connection, ok); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(over)
		_, _ = io.Copy(&captured, connection) // ends when the connection is closed
	}()
	do()
	time.Sleep(200 * time.Millisecond) // time for the rest of the stream to arrive
	_ = connection.Close()
	<-over
	return captured.Bytes()
}

// runObserved runs a strategy on one server and captures that server's MONITOR. It returns the engine's run, the run's
// lock as seen in the capture, and the whole document. change may edit the workload.
func runObserved(t *testing.T, strategy string, change func(*workloads.Spec)) (results.Run, Lock, *Document) {
	t.Helper()
	return runOnNodes(t, 1, strategy, change)
}

// runOnNodes is like runObserved, but starts several independent servers and joins their captures.
func runOnNodes(
	t *testing.T, nodes int, strategy string, change func(*workloads.Spec),
) (results.Run, Lock, *Document) {
	t.Helper()
	variants, err := strategies.ParseVariants(strategy)
	if err != nil {
		t.Fatal(err)
	}
	plan := lockbench.Plan{Strategies: variants, Workload: workloads.Default(), Rounds: 1}
	w := &plan.Workload
	w.Clients, w.Instances, w.Warmup, w.Iterations = 8, 2, 0, 200
	w.Hold, w.Think = workloads.Fixed(2*time.Millisecond), workloads.Fixed(5*time.Millisecond)
	if change != nil {
		change(w)
	}
	var report *results.Report
	run := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		report, err = lockbench.Run(ctx, plan)
	}
	var urls []string
	captures := make([][]byte, nodes)
	for i := range nodes {
		server, do := redistest.Start(t), run
		urls = append(urls, server.URL())
		run = func() { captures[i] = monitored(t, server.Addr, do) }
	}
	plan.Redis.Address = strings.Join(urls, ",")
	run()
	if err != nil || len(report.Runs) != 1 {
		t.Fatalf("%s: %v", strategy, err)
	}
	var streams []io.Reader
	for _, captured := range captures {
		streams = append(streams, bytes.NewReader(captured))
	}
	d, err := ReadNodes(t.Context(), streams, Options{Top: 20, Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range d.Locks {
		if strings.Contains(l.Name, ":1:0}") {
			return report.Runs[0], l, d
		}
	}
	t.Fatalf("%s: its lock is not among %d locks", strategy, len(d.Locks))
	return results.Run{}, Lock{}, nil
}

// within fails the test if the observed count `seen` differs from the true count `is` by more than share × is + edges.
// edges allows for events just before or after the window.
func within(t *testing.T, what string, seen, is, share, edges float64) {
	t.Helper()
	if math.Abs(seen-is) > share*is+edges {
		t.Errorf("%s: observed %v, it was %v", what, seen, is)
	}
}

// The figures from the capture must match those of the engine. The capture also contains leases and tries after the end
// of the engine's window, at most two for each client.
func TestObservedLocksMatchEngine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		strategy, shape, library string
		tries                    bool // the strategy counts its tries at Redis
	}{
		{"spin", "SET NX; compare and delete in a script", "redis-py", true},
		{"setnx-expire", "SETNX; compare and delete in a script", "by hand", true},
		// The clients of the following two strategies share connections, so a delete does not show which client sent it.
		{"setnx-expire:check=false", "SETNX; DEL", "by hand", true},
		{"setnx-expire:check=get", "SETNX; DEL", "by hand", true},
		{"redsync", "SET NX; compare and delete in a script", "redsync", false},
		{"redislock", "MSETNX and PEXPIRE in a script; compare and delete in a script", "redislock", false},
		{"redisson-spin", "HINCRBY and PEXPIRE in a script; HINCRBY −1 and DEL in a script", "Redisson", true},
		{"pubsub", "HINCRBY and PEXPIRE in a script; HINCRBY −1 and DEL in a script", "Redisson", true},
		{"fair", "HINCRBY and PEXPIRE in a script; HINCRBY −1 and DEL in a script", "Redisson", true},
		{"fenced", "HINCRBY and PEXPIRE in a script; HINCRBY −1 and DEL in a script", "Redisson", true},
		{"blpop", "SET NX in a script; compare and delete in a script", "blpop", true},
		// The capture and the engine count handoff's tries differently: a waiter joins the queue only once, and another
		// client's release later grants it the lock.
		{"handoff", "GET and SET in a script; compare and delete in a script", "handoff", false},
	} {
		t.Run(test.strategy, func(t *testing.T) {
			t.Parallel()
			run, seen, d := runObserved(t, test.strategy, func(w *workloads.Spec) {
				if test.strategy == "handoff" { // within a process it passes the lock on without Redis
					w.Instances = w.Clients
				}
			})
			const clients = 8
			leases := float64(run.Speed.Acquisitions)
			within(t, "leases", float64(seen.Acquisitions), leases, 0, 2*clients)
			within(t, "holds", float64(seen.Hold.Count), leases, 0, 2*clients)
			within(t, "waits", float64(seen.Wait.Count), leases, 0, 2*clients)
			tries := math.NaN()
			if test.tries {
				tries = *run.Effort.Attempts * leases
				within(t, "tries", float64(seen.Tries), tries, 0.05, 4*clients)
			}
			t.Logf("| %s | %d / %d | %d / %.0f | %d | wait p50 %v / %v | hold p50 %v / %v", test.strategy,
				seen.Acquisitions,
				run.Speed.Acquisitions, seen.Tries, tries, seen.Hold.Count, seen.Wait.P50,
				run.Waiting.PerAcquisition.P50,
				seen.Hold.P50, run.Speed.Hold.P50)
			if seen.Shape != test.shape || !strings.Contains(seen.Libraries, test.library) {
				t.Errorf("its shape is %s (%s)", seen.Shape, seen.Libraries)
			}
			if strings.HasPrefix(test.strategy, "setnx-expire") && seen.WithoutTTL <= clients {
				seen.WithoutTTL = 0 // the end of the window stops clients between SETNX and PEXPIRE
			}
			if unsafe := seen.unsafe() + seen.Expired + seen.LateReleases; unsafe > 0 {
				t.Errorf("a good lock looks unsafe: %+v", seen.Counts)
			}
			for _, l := range d.Locks {
				if !strings.HasPrefix(l.Name, "lockbench") {
					t.Errorf("%s is taken for a lock", l.Name)
				}
			}
		})
	}
}

// Each lock has a fault, such as a missing TTL. The document must report that fault.
func TestPlantedLockFaultsAreFound(t *testing.T) {
	t.Parallel()
	overrun := func(w *workloads.Spec) { // some holds end after the TTL
		w.TTL = workloads.Duration(60 * time.Millisecond)
		if err := w.Hold.UnmarshalText([]byte("uniform:10ms,100ms")); err != nil {
			t.Fatal(err)
		}
		w.Iterations = 60
	}
	t.Run("no TTL", func(t *testing.T) {
		t.Parallel()
		run, seen, _ := runObserved(t, "setnx", nil)
		within(t, "leases", float64(seen.Acquisitions), float64(run.Speed.Acquisitions), 0, 16)
		if seen.WithoutTTL != seen.Acquisitions {
			t.Errorf("%d of %d leases have no TTL", seen.WithoutTTL, seen.Acquisitions)
		}
	})
	t.Run("deletes without compare", func(t *testing.T) {
		t.Parallel()
		run, seen, _ := runObserved(t, "setnx-expire:check=false", overrun)
		t.Logf("observed %+v, safety %+v", seen.Counts, run.Safety)
		within(t, "leases", float64(seen.Acquisitions), float64(run.Speed.Acquisitions), 0, 16)
		// The clients share connections, so the delete alone does not show that it ended another client's lease. Later
		// commands do.
		if seen.Expired == 0 || seen.OthersDeleted == 0 || seen.TTLApart == 0 {
			t.Errorf("observed %+v", seen.Counts)
		}
	})
	t.Run("held beyond the TTL", func(t *testing.T) {
		t.Parallel()
		run, seen, _ := runObserved(t, "spin", overrun)
		t.Logf("observed %+v, safety %+v", seen.Counts, run.Safety)
		if seen.Expired == 0 || seen.OthersDeleted > 0 {
			t.Errorf("observed %+v", seen.Counts)
		}
		within(t, "released late", float64(seen.LateReleases), float64(run.Safety.LostLeases), 0, 16)
		within(t, "expired", float64(seen.Expired), float64(run.Safety.LostLeases), 0, 16)
	})
}
