package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// rights makes every strategy that fits the topology acquire, extend and release once.
func (e examination) rights(ctx context.Context) Symptom {
	s := Symptom{Name: "rights", State: Well}
	tried := 0
	for _, strategy := range strategies.All() {
		info := strategy.Info
		if !info.OnRedis() || e.server.Unfit(info) != "" {
			continue
		}
		v, err := strategies.NewVariant(info.Name, nil)
		if err != nil {
			continue // a test checks the defaults
		}
		tried++
		job := engine.Job{Strategy: v, Workload: workloads.Default(), Target: e.server, Session: e.id}
		if info.Capacity == 0 {
			job.Workload.Work = workloads.WorkCounter // for strategies that are no locks and do the work themselves
		}
		if err := job.Try(ctx); err != nil {
			s.State = Trouble
			s.Says = append(s.Says, oneLine(err))
			if next := servers.NextStep(err.Error()); next != "" && len(s.Next) == 0 {
				s.Next = append(s.Next, next)
			}
		}
	}
	s.Says = append([]string{fmt.Sprintf("%d of %d strategies could acquire and release", tried-len(s.Says), tried)}, s.Says...)
	if missing := e.unmeasured(ctx); len(missing) > 0 {
		if s.State == Well {
			s.State = Note
		}
		s.Says = append(s.Says, "for all figures there lack "+strings.Join(missing, " "))
	}
	return s
}

// unmeasured returns the rights that lockbench itself would use and does not have.
func (e examination) unmeasured(ctx context.Context) []string {
	var missing []string
	_ = e.server.Ask(ctx, 0, func(ctx context.Context, client redis.UniversalClient) error {
		for _, ask := range []struct {
			right string
			words []any
		}{
			{"+info", []any{"INFO", "server"}},
			{"+config|get", []any{"CONFIG", "GET", "maxclients"}},
			{"+client|list", []any{"CLIENT", "LIST"}},
			{"+scan", []any{"SCAN", "0", "COUNT", "1"}},
			{"+pubsub|channels", []any{"PUBSUB", "CHANNELS", engine.Prefix + "none"}},
		} {
			if err := client.Do(ctx, ask.words...).Err(); servers.Refused(err) == "NOPERM" {
				missing = append(missing, ask.right)
			}
		}
		return nil
	})
	return missing
}
