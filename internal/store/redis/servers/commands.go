package servers

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/store"
)

// greetings are commands that a client sends when it opens a connection. They are not part of an acquisition.
var greetings = []string{"HELLO", "AUTH", "CLIENT", "SELECT", "PING", "READONLY", "CLUSTER", "COMMAND"}

// Commands parses data in the Redis protocol and returns the names of the commands, without greetings. The name of a
// script includes its digest. Commands returns no names if the data begins in the middle of a command.
func (*Server) Commands(written []byte) []string {
	return slices.DeleteFunc(commandsIn(written), func(name string) bool { return slices.Contains(greetings, name) })
}

func commandsIn(b []byte) []string {
	var names []string
	for len(b) > 0 && b[0] == '*' {
		count, rest, ok := length(b)
		if !ok {
			break
		}
		var words [][]byte
		for range count {
			size, after, ok := length(rest)
			if !ok || len(after) < size+2 {
				break
			}
			words = append(words, after[:size])
			rest = after[size+2:]
		}
		if len(words) == 0 {
			break
		}
		name := string(bytes.ToUpper(words[0]))
		if (name == "EVALSHA" || name == "EVAL") && len(words) > 1 {
			name += " " + string(words[1])
		}
		names = append(names, name)
		if len(words) < count {
			break
		}
		b = rest
	}
	return names
}

// length reads the number in a line such as *3 or $5, and returns it with the data after the line. It returns false if
// the data does not begin with such a line.
func length(b []byte) (int, []byte, bool) {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 2 {
		return 0, nil, false
	}
	n := 0
	for _, digit := range b[1:end] {
		if digit < '0' || digit > '9' || n > 1<<20 {
			return 0, nil, false
		}
		n = n*10 + int(digit-'0')
	}
	return n, b[end+2:], true
}

// observed is a hook that counts the requests on the observers' connections, so that reports can separate them from the
// clients' requests.
type observed struct{ *store.Meter }

// withSubcommands are the commands of the observers that INFO commandstats counts by subcommand.
var withSubcommands = []string{"client", "cluster", "command", "config", "pubsub", "script"}

// count counts commands under the names that they have in INFO commandstats.
func (o observed) count(commands ...redis.Cmder) {
	for _, c := range commands {
		name := c.Name()
		if args := c.Args(); slices.Contains(withSubcommands, name) && len(args) > 1 {
			name = fmt.Sprint(name, "|", args[1])
		}
		o.Count(strings.ToLower(name))
	}
}

// These are the methods of redis.Hook.

func (o observed) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (o observed) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		o.count(c)
		return next(ctx, c)
	}
}

func (o observed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		o.count(commands...)
		return next(ctx, commands)
	}
}
