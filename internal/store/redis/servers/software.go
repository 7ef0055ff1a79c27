package servers

import (
	"cmp"
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/untrusted"
)

// software is what a server says about itself. Valkey, KeyDB and Dragonfly use Redis's protocol; their
// redis_version is the Redis with which they are compatible.
type software struct {
	name      string // redis, valkey, keydb, dragonfly; "" if not known
	version   string
	mode      string // standalone, cluster, sentinel
	protocol  int    // RESP version of our connections; 0 if not known
	ioThreads *int   // nil if not known
}

// greeting returns the fields of a reply to HELLO, in either version of the protocol.
func greeting(reply any) map[string]string {
	fields := map[string]string{}
	add := func(name, value any) {
		key, _ := name.(string)
		switch v := value.(type) {
		case string:
			fields[key] = untrusted.Printable(v)
		case int64:
			fields[key] = strconv.FormatInt(v, 10)
		}
	}
	switch reply := reply.(type) {
	case map[any]any:
		for name, value := range reply {
			add(name, value)
		}
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			add(reply[i], reply[i+1])
		}
	}
	return fields
}

// softwareOf reads INFO, and HELLO for what is missing there.
func softwareOf(info replies.Info, hello map[string]string) software {
	s := software{
		name:    cmp.Or(info["server_name"], hello["server"]),
		version: cmp.Or(info["valkey_version"], info["redis_version"], hello["version"]),
		mode:    strings.TrimSpace(cmp.Or(info["server_mode"], info["redis_mode"], hello["mode"])),
	}
	s.protocol, _ = strconv.Atoi(hello["proto"])
	switch program := filepath.Base(info["executable"]); {
	case info["dragonfly_version"] != "":
		s.name, s.version = "dragonfly", strings.TrimPrefix(info["dragonfly_version"], "df-v")
	case strings.HasPrefix(program, "keydb"):
		s.name = "keydb"
	case s.name == "" && s.version != "":
		s.name = "redis"
	}
	return s
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
	greeted := greeting(hello.Val())
	n.software = softwareOf(fields, greeted)
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
