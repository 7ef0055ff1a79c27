package trial

import (
	"context"

	"github.com/lockbench/lockbench/internal/store/redis/servers"
)

// Redis starts a server for an example, which has no testing.T.
func Redis() (address string, stop func()) {
	own, err := servers.StartOwn(context.Background(), servers.Options{RunID: "test"})
	if err != nil {
		panic(err)
	}
	return own.Addr(), func() { _ = own.Close(context.Background()) }
}
