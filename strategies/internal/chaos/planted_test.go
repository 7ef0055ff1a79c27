package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// planted is a plain lock with a fault.
type planted struct {
	goredis.Config
	late  bool // a lease is valid for longer than Redis keeps it
	twice bool // a token is given to two
	deaf  bool // some wait on although the lock is free
}

func (p *planted) Close() error { return nil }

func (p *planted) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	server := p.Nodes[0].Client
	id := fmt.Sprint(rand.Int64())
	for ctx.Err() == nil {
		if p.deaf && rand.IntN(50) == 0 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		asked := time.Now()
		got, err := server.SetNX(ctx, p.Key(key), id, p.TTL).Result()
		if err == nil && got {
			now, err := server.Time(ctx).Result()
			if err != nil {
				return nil, err
			}
			l := &plantedLease{p, key, id, now.UnixMicro(), asked.Add(p.TTL * 9 / 10)}
			if p.late {
				l.until = l.until.Add(10 * p.TTL)
			}
			if p.twice {
				l.token /= 20_000 // the same for 20 ms
			}
			return l, nil
		}
		time.Sleep(rand.N(4 * time.Millisecond))
	}
	return nil, ctx.Err()
}

type plantedLease struct {
	*planted
	key, id string
	token   int64
	until   time.Time
}

func (l *plantedLease) FencingToken() int64   { return l.token }
func (l *plantedLease) ValidUntil() time.Time { return l.until }

var compareAndDelete = redis.NewScript(`return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0`)

func (l *plantedLease) Release(ctx context.Context) error {
	n, err := compareAndDelete.Run(ctx, l.Nodes[0].Client, []string{l.Key(l.key)}, l.id).Int()
	if err == nil && n == 0 {
		return strategies.ErrNotHeld
	}
	return err
}

// What chaos looks for it finds, in a lock that has it, and only there.
func TestPlantedFaultsAreFound(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		planted
		play  time.Duration // longer than somebody may wait
		found func(*tally) bool
	}{
		"none":        {planted{}, 3 * time.Second, (*tally).sound},
		"late":        {planted{late: true}, 3 * time.Second, func(s *tally) bool { return s.overlaps > 0 && len(s.impossible) > 0 }},
		"token twice": {planted{twice: true}, 3 * time.Second, func(s *tally) bool { return s.repeated > 0 && len(s.impossible) > 0 && s.overlaps == 0 }},
		"deaf waiter": {planted{deaf: true}, 9 * time.Second, func(s *tally) bool { return s.stuck > 0 && s.overlaps+s.repeated == 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			d := &deployment{
				name:    name,
				options: func(int) *redis.UniversalOptions { return &redis.UniversalOptions{Addrs: []string{server.Addr}} },
				troubles: []trouble{
					cutSome(server.Client(t)), {"pause", func(c *chaos) { c.pause(server, rand.N(50*time.Millisecond)) }},
				},
			}
			c := newChaos(t, d, func(config goredis.Config) (strategies.Locker, error) {
				lock := fault.planted
				lock.Config = config
				return &lock, nil
			})
			sum := &tally{name: name, faults: map[string]int{}}
			for end := time.Now().Add(2 * time.Minute); ; {
				c.play(fault.play)
				s := c.judge()
				sum.add(s)
				if fault.found(s) {
					return
				}
				if name == "none" || time.Now().After(end) {
					break
				}
			}
			t.Errorf("the verdict of a lock with this fault: %s, %v", sum, sum.impossible)
		})
	}
}
