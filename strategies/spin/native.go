package spin

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/token"
)

// How a lock is released and extended.
const (
	Script = "script" // by Lua scripts, on every server
	Native = "native" // by the server's own compare-and-delete and compare-and-set
)

// releases returns the rights with those that release and extend need.
func (o Options) releases(r strategies.Rights) strategies.Rights {
	if o.Release != Native {
		return r
	}
	r.Commands, r.OneOf = []string{"set"}, []string{string(token.DelIfEq), string(token.DelEx)}
	return r
}

// commands returns the commands that release and extend. Locker asks the server once which
// native ones it has; until there is an answer, every acquire asks.
func (l *Locker) commands(ctx context.Context) (token.Commands, error) {
	if l.options.Release != Native {
		return token.Scripts, nil
	}
	if found := l.native.Load(); found != nil {
		return *found, nil
	}
	found, err := token.FindNative(ctx, l.client, l.config.Key("native"), l.owners.Next())
	if err != nil {
		return found, fmt.Errorf("spin: release=%s: %w", Native, indeterminate.Because(ctx, err))
	}
	l.native.Store(&found)
	return found, nil
}
