package command_test

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// TestSoak runs every strategy for as long as LOCKBENCH_SOAK says, with 500 and
// with 10,000 clients: nothing may break, nothing may be left behind.
func TestSoak(t *testing.T) {
	each := os.Getenv("LOCKBENCH_SOAK")
	if each == "" {
		t.Skip("takes minutes: make soak")
	}
	if _, err := time.ParseDuration(each); err != nil {
		t.Fatalf("LOCKBENCH_SOAK is how long to run each strategy: %v", err)
	}
	for _, s := range strategies.All() {
		for _, clients := range []int{500, 10_000} {
			t.Run(s.Info.Name+"/"+strconv.Itoa(clients), func(t *testing.T) {
				if s.Info.Nodes > 1 || s.Info.Store != "" {
					t.Skip("it needs several nodes, or another store")
				}
				soak(t, s.Info.Name, clients, each)
			})
		}
	}
}

func soak(t *testing.T, strategy string, clients int, each string) {
	redis := redistest.Start(t, "--maxclients", "30000")
	observer := redis.Client(t)
	var stdout, stderr bytes.Buffer
	// A process of its own, so that the memory is its own.
	cmd := exec.CommandContext(t.Context(), "lockbench", "-q", "-u", redis.URL(), "-s", strategy,
		"-c", strconv.Itoa(clients), "-d", each, "--work", "counter", "--no-baselines", "-o", "json")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if code := exitCode(cmd.Run()); code != "0" {
		t.Fatalf("exit code %s, said:\n%s", code, &stderr)
	}
	report, err := results.ReadJSON(&stdout)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Runs) != 1 {
		t.Fatalf("%d runs", len(report.Runs))
	}
	run := report.Runs[0]
	t.Logf("%.0f acquisitions/s, books off by %.3f %%, %d MB resident", run.Speed.PerSecond,
		run.TimeAccounting.WorstPercent, run.Generator.PeakRSS>>20)
	if *run.Safety.LeftoverCount > 0 {
		t.Errorf("leftovers: %v", run.Safety.Leftovers)
	}
	if keys, err := observer.DBSize(t.Context()).Result(); err != nil || keys > 0 {
		t.Errorf("%d keys left, %v", keys, err)
	}
	if list, err := observer.ClientList(t.Context()).Result(); err != nil ||
		bytes.Count([]byte(list), []byte("\n")) > 2 {
		t.Errorf("connections left, %v:\n%s", err, list)
	}
}
