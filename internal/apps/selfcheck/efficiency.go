package selfcheck

import (
	"context"
	"encoding/csv"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// The load of the efficiency check: no client waits.
const (
	lone, loneKeys = 50, 10000
	reference      = "redis-benchmark"
)

// compareAndDelete releases a lock.
const compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

// efficiency lets clients take and release locks without waiters, and redis-benchmark send the same two
// commands over as many connections. The share of that rate which remains shows the cost of the
// measurement and of the client library.
func (s *session) efficiency(ctx context.Context, c *Check) error {
	own := s.server.Owned()
	path, err := exec.LookPath(reference)
	spin := registered("spin")
	switch {
	case len(own) == 0:
		c.unsure("only a server that lockbench started itself is loaded with %s", reference)
		return nil
	case err != nil:
		c.unsure("there is no %s to compare with", reference)
		return nil
	case len(spin) == 0:
		c.unsure("this program has no lock that takes two commands")
		return nil
	}
	w := workload(lone, 1, s.Effort.Window)
	w.Keys, w.Hold, w.Warmup = loneKeys, workloads.Dist{}, w.Duration/10
	s.say("efficiency: %s and %s send the same commands", spin[0].Name(), reference)
	before, err := s.pairs(ctx, path)
	if err != nil {
		return err
	}
	run, err := s.do(ctx, s.job(spin[0], w))
	if err != nil {
		return err
	}
	after, err := s.pairs(ctx, path)
	if err != nil {
		return err
	}
	most := (before + after) / 2
	c.inform(reference+": pairs of SET and EVALSHA", most, results.PerSecond)
	c.inform(spin[0].Name()+": acquisitions", run.Speed.PerSecond, results.PerSecond)
	share := run.Speed.PerSecond / most * 100
	c.hope(share >= 50, "share of it", share, results.Percent, "at least half")
	return nil
}

// pairs returns how many locks per second redis-benchmark takes and releases, from its rates for the two
// commands.
func (s *session) pairs(ctx context.Context, path string) (float64, error) {
	nodes, err := s.server.Clients(ctx, "reference", 1, nil)
	if err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}
	client := nodes[0].Client
	defer client.Close()
	script, err := client.ScriptLoad(ctx, compareAndDelete).Result()
	if err != nil {
		return 0, fmt.Errorf("load the script: %w", err)
	}
	key := fmt.Sprintf("%s{%s:reference}:__rand_int__", engine.Prefix, s.id)
	// redis-benchmark takes a password in its arguments only, which everybody on this machine can read. So it
	// gets a user of its own, who may do nothing else.
	rights := []string{"reset", "on", "nopass", "~" + engine.Prefix + "{" + s.id + ":reference}:*", "+set", "+evalsha", "+get", "+del"}
	if err := client.ACLSetUser(ctx, reference, rights...).Err(); err != nil {
		return 0, fmt.Errorf("make a user for %s: %w", reference, err)
	}
	defer client.Do(context.WithoutCancel(ctx), "ACL", "DELUSER", reference)
	host, port, _ := strings.Cut(s.server.Describe().Address, ":")
	seconds := 0.0
	for _, command := range [][]string{{"SET", key, "owner", "NX", "PX", "10000"}, {"EVALSHA", script, "1", key, "owner"}} {
		arguments := append([]string{
			"-h", host, "-p", port, "--user", reference, "-a", "none",
			"-c", strconv.Itoa(lone), "-r", strconv.Itoa(loneKeys), "-n", strconv.Itoa(s.Effort.Reference), "--csv",
		}, command...)
		printed, err := exec.CommandContext(ctx, path, arguments...).Output()
		if err != nil {
			return 0, fmt.Errorf("run %s: %w", reference, err)
		}
		rows, err := csv.NewReader(strings.NewReader(string(printed))).ReadAll()
		if err != nil || len(rows) != 2 || len(rows[1]) < 2 {
			return 0, fmt.Errorf("read what %s printed: %q", reference, printed)
		}
		rate, err := strconv.ParseFloat(rows[1][1], 64)
		if err != nil || rate <= 0 {
			return 0, fmt.Errorf("read the rate that %s printed: %q", reference, rows[1][1])
		}
		seconds += 1 / rate
	}
	return 1 / seconds, nil
}
