package servers

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// software is what a server says about itself.
type software struct {
	goredis.Software
	protocol  int  // RESP version of our connections; 0 if not known
	ioThreads *int // nil if not known
}

// learn asks a server for its software and its role.
func (n *node) learn(ctx context.Context) (replies.Info, map[string]string, error) {
	pipe := n.observer.Pipeline()
	asked := infos(ctx, pipe, "server", "replication")
	hello := pipe.Do(ctx, "HELLO")
	threads := pipe.ConfigGet(ctx, "io-threads")
	fields, err := sent(ctx, pipe, asked)
	if err != nil {
		return nil, nil, err
	}
	greeted := goredis.Greeting(hello.Val())
	for name, value := range greeted {
		greeted[name] = untrusted.Printable(value)
	}
	n.software.Software = goredis.SoftwareOf(fields, greeted)
	n.software.protocol, _ = strconv.Atoi(greeted["proto"])
	if count, err := strconv.Atoi(threads.Val()["io-threads"]); err == nil {
		n.software.ioThreads = &count
	}
	return fields, greeted, nil
}

// readInfo reads several sections in one pipeline. It leaves out sections that the server refuses.
func readInfo(ctx context.Context, client redis.UniversalClient, sections ...string) (replies.Info, error) {
	pipe := client.Pipeline()
	return sent(ctx, pipe, infos(ctx, pipe, sections...))
}
