package driver

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// OpenThrough opens a driver whose connections go through one proxy per node. Each proxy uses the Dialer of the node's
// options, so a Dialer that observes, delays or breaks the connections of a lock in this program does the same to the
// connections of a driver. OpenThrough kills the driver when ctx ends.
func OpenThrough(ctx context.Context, v strategies.Variant, c goredis.Config) (strategies.Locker, error) {
	ways := new(netfault.Proxies)
	nodes := c.Nodes
	c.Nodes = nil
	for _, node := range nodes {
		way, err := ways.Listen(node.DialAs)
		if err != nil {
			ways.Close()
			return nil, fmt.Errorf("start a proxy for the driver: %w", err)
		}
		c.Nodes = append(c.Nodes, node.At(way.Addr()))
	}
	locker, err := goredis.Open(v, c)
	if err != nil {
		ways.Close()
		return nil, err
	}
	d := locker.(*Driver)
	return &through{d, ways, context.AfterFunc(ctx, func() { _ = d.fail(context.Cause(ctx)) })}, nil
}

type through struct {
	*Driver
	ways  *netfault.Proxies
	spare func() bool // prevents the kill at the end of ctx
}

// Close ends the driver and then closes its proxies.
func (t *through) Close() error {
	t.spare()
	defer t.ways.Close()
	return t.Driver.Close()
}
