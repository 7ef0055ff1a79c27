package observe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// The test binary runs itself as the command of --exec. With the arguments program and NAME, it runs one of the
// programs in this file.

// client has one connection, like a client in a separate process. Its methods panic on errors.
type client struct {
	*redis.Client
	ctx context.Context
}

func connected(ctx context.Context, variable string) client {
	options, err := redis.ParseURL(os.Getenv(variable))
	if err != nil {
		panic(err)
	}
	options.PoolSize, options.DisableIdentity = 1, true
	c := redis.NewClient(options)
	if err := c.Ping(ctx).Err(); err != nil {
		panic(err)
	}
	return client{c, ctx}
}

func (c client) take(key, value string, ttl time.Duration) {
	for !c.try(key, value, ttl) {
		time.Sleep(2 * time.Millisecond) // between two tries of a client that polls
	}
}

func (c client) try(key, value string, ttl time.Duration) bool {
	words := []any{"set", key, value, "nx"}
	if ttl > 0 {
		words = append(words, "px", ttl.Milliseconds())
	}
	err := c.Do(c.ctx, words...).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		panic(err)
	}
	return err == nil
}

// give releases the lock correctly: a script compares the owner and deletes the key.
func (c client) give(key, value string) {
	c.must(c.Eval(c.ctx, `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) end return 0`,
		[]string{key}, value).Err())
}

func (c client) renew(key, value string, ttl time.Duration) {
	c.must(c.Eval(c.ctx, `if redis.call("get",KEYS[1]) == ARGV[1] then
		return redis.call("pexpire",KEYS[1],ARGV[2]) end return 0`, []string{key}, value, ttl.Milliseconds()).Err())
}

func (c client) must(err error) {
	if err != nil && !errors.Is(err, redis.Nil) {
		panic(err)
	}
}

const (
	long  = 10 * time.Second
	short = 60 * time.Millisecond
)

// planted maps the name of a program with one fault to the key that it locks, the JSON names of the counts that must
// report the fault, and the program itself.
var planted = map[string]struct {
	key    string
	faults []string
	does   func(a, b client, key string)
}{
	"no TTL": {"order:7", []string{"without_ttl"}, func(a, _ client, key string) {
		a.take(key, "a", 0)
		a.give(key, "a")
	}},
	"SET without NX": {"lock:order:7", []string{"without_nx"}, func(a, _ client, key string) {
		if n := a.Exists(a.ctx, key).Val(); n == 0 {
			a.must(a.Set(a.ctx, key, "a", long).Err())
		}
		a.give(key, "a")
	}},
	"SET without NX, which takes the lock": {
		"order:7",
		[]string{"overwritten", "without_nx"},
		func(a, b client, key string) {
			a.take(key, "a", long)
			b.must(b.Set(b.ctx, key, "b", long).Err())
			b.give(key, "b")
		},
	},
	"delete without compare": {"lock:order:7", []string{"unsafe_releases"}, func(a, _ client, key string) {
		a.take(key, "a", long)
		a.must(a.Del(a.ctx, key).Err())
	}},
	"delete by another client": {"order:7", []string{"others_deleted", "unsafe_releases"}, func(a, b client, key string) {
		a.take(key, "a", long)
		for range 3 {
			b.try(key, "b", long)
		}
		b.must(b.Del(b.ctx, key).Err())
		b.take(key, "b", long)
		b.give(key, "b")
	}},
	"one value for all clients": {"order:7", []string{"shared_value"}, func(a, b client, key string) {
		a.take(key, "locked", long)
		b.try(key, "locked", long)
		a.give(key, "locked")
		b.take(key, "locked", long)
		b.give(key, "locked")
	}},
	"released after its end": {"order:7", []string{"late_releases"}, func(a, b client, key string) {
		a.take(key, "a", short)
		b.take(key, "b", long) // after the end of a's lease
		a.give(key, "a")
		b.give(key, "b")
	}},
	"EXPIRE as a second command": {"order:7", []string{"ttl_apart"}, func(a, _ client, key string) {
		a.take(key, "a", 0)
		a.must(a.PExpire(a.ctx, key, long).Err())
		a.give(key, "a")
	}},
	"renewals that stop": {"order:7", []string{"late_releases", "renewals_stopped"}, func(a, b client, key string) {
		a.take(key, "a", short)
		for range 3 {
			a.renew(key, "a", short)
		}
		b.take(key, "b", long)
		a.give(key, "a")
		b.give(key, "b")
	}},
	"a key without a name": {"order:undefined", []string{"nameless"}, correct},
	"a key of null":        {"user:null:lock", []string{"nameless"}, correct},
	"a key of None":        {"lock:None", []string{"nameless"}, correct},
}

// correct makes clients a and b use a lock without a fault. Each client sets a TTL, and deletes the key only if it is
// the owner.
func correct(a, b client, key string) {
	a.take(key, "a", long)
	b.try(key, "b", long)
	a.give(key, "a")
	b.take(key, "b", long)
	b.give(key, "b")
}

// good maps names to programs without a fault. Some of them use no lock, but commands that resemble one.
var good = map[string]func(a, b client){
	"cache": func(a, b client) {
		for i := range 60 {
			key := fmt.Sprintf("page:%d", i%20)
			if a.Get(a.ctx, key).Err() != nil {
				a.must(a.Do(a.ctx, "set", key, "content", "nx", "ex", 60).Err())
			}
			b.must(b.Do(b.ctx, "set", key, "content", "nx", "ex", 60).Err())
			b.must(b.Get(b.ctx, key).Err())
			if i%7 == 0 {
				a.must(a.Del(a.ctx, key).Err())
			}
		}
	},
	"cache of undefined": func(a, _ client) {
		a.must(a.Do(a.ctx, "set", "page:undefined", "content", "nx", "ex", 60).Err())
		a.must(a.Set(a.ctx, "page:null", "content", long).Err())
	},
	"correct by hand": func(a, b client) { correct(a, b, "lock:order:7") },
	"tests with FLUSHDB": func(a, b client) {
		for _, empty := range []string{"flushdb", "flushall"} {
			a.take("lock:order:7", "a", long)
			b.try("lock:order:7", "b", long)
			a.must(a.Do(a.ctx, empty).Err())
			correct(a, b, "lock:order:7")
		}
	},
	"WATCH and MULTI": func(a, b client) {
		for _, c := range []client{a, b} {
			c.take("lock:order:7", "mine", long)
			c.must(c.Watch(c.ctx, func(tx *redis.Tx) error {
				if tx.Get(c.ctx, "lock:order:7").Val() != "mine" {
					return nil
				}
				_, err := tx.TxPipelined(c.ctx, func(p redis.Pipeliner) error { return p.Del(c.ctx, "lock:order:7").Err() })
				return err
			}, "lock:order:7"))
		}
	},
	"kept at least for a time": func(a, b client) { // like ShedLock's lockAtLeastFor
		a.take("job-lock:report", "a", long)
		a.must(a.Do(a.ctx, "set", "job-lock:report", "a", "xx", "px", short.Milliseconds()).Err())
		b.take("job-lock:report", "b", long)
		b.give("job-lock:report", "b")
	},
}

// program runs the program with this name: an entry of good or planted, or a strategy if the name begins with "lock ".
func program(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a, b := connected(ctx, "REDIS_URL"), connected(ctx, "LOCKBENCH_REDIS")
	strategy, isLock := strings.CutPrefix(name, "lock ")
	switch {
	case isLock:
		contended(ctx, strategy)
	case good[name] != nil:
		good[name](a, b)
	default:
		planted[name].does(a, b, planted[name].key)
	}
	fmt.Println(name, "ended")
}

// contended opens four Lockers of a strategy, whose clients contend for the same lock.
func contended(ctx context.Context, strategy string) {
	v, err := strategies.NewVariant(strategy, nil)
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			options, _ := redis.ParseURL(os.Getenv("REDIS_URL"))
			many := &redis.UniversalOptions{Addrs: []string{options.Addr}, DisableIdentity: true}
			node := goredis.Node{Client: redis.NewUniversalClient(many), Options: many}
			defer node.Client.Close()
			locker, err := goredis.Open(v, goredis.Config{
				Nodes: []goredis.Node{node}, Prefix: "service:", TTL: long, Callers: 2,
			})
			if err != nil {
				panic(err)
			}
			defer locker.Close()
			if p, ok := strategies.As[strategies.Preparer](locker); ok {
				if err := p.Prepare(ctx, []string{"order:7"}); err != nil {
					panic(err)
				}
			}
			for range 20 {
				lease, err := locker.Acquire(ctx, "order:7")
				if err == nil {
					time.Sleep(time.Millisecond) // the hold
					err = lease.Release(ctx)
				}
				if err != nil {
					panic(err)
				}
			}
		})
	}
	all.Wait()
}
