package driver

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// OpenThrough opens a driver whose connections go through the Dialers of the nodes' options, over a proxy for each
// node: what watches, delays or breaks the connections of a lock in this program does so to the driver's. The driver is
// killed when ctx ends.
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

// through is a driver with its proxies.
type through struct {
	*Driver
	ways  *netfault.Proxies
	spare func() bool // from being killed
}

// Close ends the driver, then the proxies.
func (t *through) Close() error {
	t.spare()
	defer t.ways.Close()
	return t.Driver.Close()
}
