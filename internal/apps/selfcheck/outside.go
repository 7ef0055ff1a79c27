package selfcheck

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// readings is how many readings' bytes the byte counts may differ by: one side counts the readings at both
// ends and the other does not yet.
const readings = 4

// outside reads the server's INFO before and after a run, over its own connection and with its own code. The
// run must report the difference. On a user's server it may report more, because others may use it.
func (s *session) outside(ctx context.Context, c *Check) error {
	v, err := contender()
	if err != nil {
		return err
	}
	nodes, err := s.server.Clients(ctx, engine.Prefix+s.id+":outside", 1, nil)
	if err != nil {
		return fmt.Errorf("connect to look from outside: %w", err)
	}
	client := nodes[0].Client
	defer func() { _ = client.Close() }()

	w := workload(50, 5, s.Effort.Window)
	w.Hold = workloads.Fixed(100 * time.Microsecond)
	s.say("outside: %s", v.Name())
	before, size, err := look(ctx, client)
	if err != nil {
		return err
	}
	run, err := s.do(ctx, s.job(v, w))
	if err != nil {
		return err
	}
	after, _, err := look(ctx, client)
	if err != nil {
		return err
	}
	whole := run.Server.Whole
	if whole == nil || whole.Commands == nil || whole.BytesIn == nil || whole.BytesOut == nil {
		c.unsure("the server does not tell what it counts")
		return nil
	}

	want := c.want
	if len(s.server.Owned()) == 0 {
		c.inform("bytes received from others", value(whole.OtherTraffic), results.Percent)
		want = c.hope
	}
	var seen, told, apart float64
	for command := range after {
		name, counts := strings.CutPrefix(command, "cmdstat_")
		if !counts || name == "info" { // both sides use INFO
			continue
		}
		outside, inside := after[command]-before[command], float64(whole.Commands[name])
		seen += outside
		told += inside
		apart += math.Abs(outside - inside)
	}
	c.inform("commands seen from outside, but INFO", seen, results.Number)
	want(told > 0 && apart == 0, "commands told otherwise in the report", apart, results.Number, "0")
	for _, bytes := range []struct {
		name, field string
		told        *int64
	}{
		{"received", "total_net_input_bytes", whole.BytesIn},
		{"sent", "total_net_output_bytes", whole.BytesOut},
	} {
		outside := after[bytes.field] - before[bytes.field]
		c.inform("bytes "+bytes.name+" by Redis, from outside", outside, results.Bytes)
		want(near(float64(*bytes.told), outside, readings*size), "left out by the report", outside-float64(*bytes.told), results.Bytes,
			"at most %d looks at INFO", readings)
	}
	sockets := float64(*whole.ClientBytesOut) - float64(*whole.BytesIn)
	want(near(sockets, 0, readings*size), "bytes written to sockets less those received", sockets, results.Bytes, "likewise")
	return nil
}

// look reads the numbers in INFO: for a command its calls, otherwise the field's value. size is the length of
// the reply in bytes.
func look(ctx context.Context, client redis.UniversalClient) (numbers map[string]float64, size float64, err error) {
	text, err := client.Info(ctx, "all").Result()
	if err != nil {
		return nil, 0, fmt.Errorf("look from outside: %w", err)
	}
	numbers = map[string]float64{}
	for field, value := range replies.ParseInfo(text) {
		value, _, _ = strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			numbers[field] = n
		}
	}
	return numbers, float64(len(text)), nil
}
