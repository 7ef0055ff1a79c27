package all_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/workloads"
)

// TestCompatibility starts each server program that LOCKBENCH_SERVERS lists. If this variable is empty, it starts the
// ones on PATH of redis-server, valkey-server, redict-server and keydb-server. On each server it runs doctor and a
// short measurement of every strategy that locks on one Redis server. It writes a table of the results to the file
// LOCKBENCH_COMPAT.
func TestCompatibility(t *testing.T) {
	file := os.Getenv("LOCKBENCH_COMPAT")
	if file == "" {
		t.Skip("slow: make compat runs it")
	}
	programs := strings.Fields(os.Getenv("LOCKBENCH_SERVERS"))
	for _, name := range []string{"redis-server", "valkey-server", "redict-server", "keydb-server"} {
		if path, err := exec.LookPath(name); err == nil && os.Getenv("LOCKBENCH_SERVERS") == "" {
			programs = append(programs, path)
		}
	}
	rows := make([]string, len(programs))
	for i, program := range programs {
		t.Run(filepath.Base(program), func(t *testing.T) { rows[i] = compatible(t, program) })
	}
	const head = `# Compatibility

Written by ` + "`make compat`" + `: every strategy that locks on one Redis server, on each server found. A number is
that of the strategies that were measured without an error, an overlap or a leftover; those that need a newer Redis are
left out, as everywhere. TLS is with a user who has the rights that ` + "`lockbench list`" + ` prints and no others. ` +
		"`LOCKBENCH_SERVERS`" + ` names
other programs than those on PATH; ` + "`docker/other-server.sh`" + ` gets some out of Debian's packages.

| server | doctor | strategies | RESP2 | TLS, with the printed rights | database 3 |
|---|---|---|---|---|---|
`
	if err := os.WriteFile(file, []byte(head+strings.Join(rows, "")), 0o644); err != nil { //nolint:gosec // a page
		t.Fatal(err)
	}
}

// compatible starts the server program, runs doctor and the measurements on it, and returns its row of the table.
func compatible(t *testing.T, program string) string {
	ctx, dir := t.Context(), t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	made, err := exec.CommandContext(ctx, "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
		"-subj", "/CN=localhost", "-keyout", key, "-out", cert).CombinedOutput()
	if err != nil {
		t.Fatalf("openssl: %v: %s", err, made)
	}
	port, err := launch.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	encrypted := strconv.Itoa(port)
	server, err := servers.StartOwn(ctx, servers.Options{RunID: "test", Program: program},
		"--tls-port", encrypted, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = admin.Close() }()
	software, err := goredis.AskSoftware(ctx, admin)
	if err != nil {
		t.Fatal(err)
	}
	rules := servers.MeasuringRights()
	for _, v := range onOneServer(t) {
		rules = append(rules, strings.Fields(v.Info().Rights.SetUser("bench", engine.Prefix))[3:]...)
	}
	for _, rule := range rules { // one by one, as an old server knows neither all commands nor channels
		if rule == "reset" || rule == ">PASSWORD" {
			continue
		}
		if err := admin.Do(ctx, "ACL", "SETUSER", "bench", ">secret", rule).Err(); err != nil && rule[0] == '~' {
			t.Errorf("%s: %v", rule, err)
		}
	}
	address := "redis://" + server.Addr()
	tls := url.URL{
		Scheme: "rediss", User: url.UserPassword("bench", "secret"), Host: "localhost:" + encrypted,
		RawQuery: "skip_verify=true",
	}
	cells := []string{software.String(), examined(t, address)}
	for _, at := range []string{address, address + "?protocol=2", tls.String(), address + "/3"} {
		cells = append(cells, measured(t, at))
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// examined runs doctor and returns the table's cell for it: ✓ without trouble, ✗ with the name of the first symptom
// that is trouble, or only ✗ if doctor failed.
func examined(t *testing.T, address string) string {
	t.Helper()
	found, _, err := lockbench.Preflight(t.Context(), lockbench.Plan{
		Strategies: onOneServer(t), Workload: workloads.Default(), Rounds: 1, Baselines: true,
		Redis: lockbench.StoreOptions{Address: address},
	})
	if err != nil {
		t.Errorf("doctor: %v", err)
		return "✗"
	}
	for _, symptom := range found {
		if symptom.State == results.Trouble {
			t.Errorf("doctor: %s: %q", symptom.Name, symptom.Says)
			return "✗ " + symptom.Name
		}
	}
	return "✓"
}

// measured measures every strategy for half a second. It returns the number of strategies without a fault and the names
// of the faulty ones, or ✗ if the measurement failed.
func measured(t *testing.T, address string) string {
	t.Helper()
	work := workloads.Default()
	work.Clients, work.Instances = 10, 2
	work.Warmup, work.Duration = workloads.Duration(50*time.Millisecond), workloads.Duration(500*time.Millisecond)
	report, err := lockbench.Run(t.Context(), lockbench.Plan{
		Strategies: onOneServer(t), Workload: work, Rounds: 1, Redis: lockbench.StoreOptions{Address: address},
	})
	if err != nil {
		t.Errorf("%s: %v", address, err)
		return "✗"
	}
	var broken []string
	for _, run := range report.Runs {
		v, err := strategies.ParseVariants(run.Strategy)
		if err != nil {
			t.Fatal(err)
		}
		unsafe := v[0].Info().Claims.Exclusion && run.Safety.Overlaps > 0 || len(run.Safety.Leftovers) > 0
		if run.Speed.Acquisitions == 0 || len(run.Errors) > 0 || run.Failure != "" || unsafe {
			broken = append(broken, run.Strategy)
			t.Errorf("%s: %s: %d acquisitions, %v %s, %d overlaps, left %v",
				address, run.Strategy, run.Speed.Acquisitions, run.Errors, run.Failure, run.Safety.Overlaps,
				run.Safety.Leftovers)
		}
	}
	if len(broken) > 0 {
		return fmt.Sprintf("%d, not %s", len(report.Runs)-len(broken), strings.Join(broken, ", "))
	}
	return strconv.Itoa(len(report.Runs))
}

// onOneServer returns every strategy that locks on one Redis server, with the default options.
func onOneServer(t *testing.T) (all []strategies.Variant) {
	t.Helper()
	for _, s := range strategies.All() {
		if s.Info.OnRedis() && s.Info.Nodes == 1 && !s.Info.OnlyCounter {
			v, err := strategies.ParseVariants(s.Info.Name)
			if err != nil {
				t.Fatal(err)
			}
			all = slices.Concat(all, v)
		}
	}
	return all
}
