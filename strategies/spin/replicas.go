package spin

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// set takes the key if it is free. With wait-replicas it takes the key only if so many
// replicas have it in time, with wait-anyway also if not.
func (l *Locker) set(ctx context.Context, a acquisition) (bool, error) {
	held := a.lease
	if l.options.WaitReplicas == 0 {
		return l.client.SetNX(ctx, held.Name, held.Token, a.ttl).Result()
	}
	// WAIT counts the writes of its own connection, so both use the same one.
	var taken *redis.BoolCmd
	var replicas *redis.Cmd
	if _, err := l.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		taken = pipe.SetNX(ctx, held.Name, held.Token, a.ttl)
		replicas = pipe.Do(ctx, "WAIT", l.options.WaitReplicas, l.options.WaitTimeout.Milliseconds())
		return nil
	}); err != nil {
		return false, err
	}
	reached, err := replicas.Int()
	if err != nil {
		return false, fmt.Errorf("wait for replicas: %w", err)
	}
	if !taken.Val() || reached >= l.options.WaitReplicas || l.options.WaitAnyway {
		return taken.Val(), nil
	}
	if _, err := held.Free(ctx); err != nil {
		return false, fmt.Errorf("give back, too few replicas having it: %w", err)
	}
	return false, nil
}
