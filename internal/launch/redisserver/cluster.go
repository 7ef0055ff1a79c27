package redisserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/replies"
)

// slotCount is the number of hash slots of a Redis Cluster.
const slotCount = 16384

// BusDistance is the difference between the bus port and the client port of a cluster node.
const BusDistance = 10000

// ClusterSettings returns the arguments that make a redis-server a node of a cluster.
func ClusterSettings() []string {
	return []string{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "1000"}
}

// ClusterPorts returns a free port and its bus port, which is free, too.
func ClusterPorts() ([]int, error) {
	for range 100 {
		port, err := launch.FreePort()
		if err != nil {
			return nil, err
		}
		if bus := port + BusDistance; bus < launch.OutgoingPorts && launch.Free(bus) == nil {
			return []int{port, bus}, nil
		}
	}
	return nil, fmt.Errorf("find a free port: no candidate port has a usable bus port, which is %d higher", BusDistance)
}

// Member is a node of a cluster, with a client that sends commands to this node only.
type Member struct {
	Addr   string // host:port
	Client redis.UniversalClient
}

// Join distributes the slots evenly over empty nodes and joins the nodes into a cluster.
func Join(ctx context.Context, nodes []Member) error {
	host, port, err := net.SplitHostPort(nodes[0].Addr)
	if err != nil {
		return err
	}
	for i, n := range nodes {
		first, last := i*slotCount/len(nodes), (i+1)*slotCount/len(nodes)-1
		// Give each node a different epoch, because nodes with equal epochs would first have to resolve the conflict.
		err := n.Client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err()
		if err == nil {
			err = n.Client.ClusterAddSlotsRange(ctx, first, last).Err()
		}
		if err == nil && i > 0 {
			err = n.Client.ClusterMeet(ctx, host, port).Err()
		}
		if err != nil {
			return fmt.Errorf("make %s a node of the cluster: %w", n.Addr, err)
		}
	}
	return nil
}

// Sees returns an error unless the node sees a complete cluster with the given number of primaries. If the server
// refuses CLUSTER INFO, the error wraps the server's error.
func (m Member) Sees(ctx context.Context, primaries int) error {
	text, err := m.Client.ClusterInfo(ctx).Result()
	if err != nil {
		return fmt.Errorf("query the cluster state of %s: %w", m.Addr, err)
	}
	fields := replies.ParseInfo(text)
	size := strconv.Itoa(primaries)
	if fields["cluster_state"] != "ok" || fields["cluster_size"] != size ||
		fields["cluster_slots_ok"] != strconv.Itoa(slotCount) {
		return fmt.Errorf("%s sees the cluster as %s, with %s of %s primaries and %s of %d slots", m.Addr,
			fields["cluster_state"], fields["cluster_size"], size, fields["cluster_slots_ok"], slotCount)
	}
	return nil
}

// StartCluster starts a cluster with the given number of primaries, and returns when every node sees the complete
// cluster. The caller must close the nodes.
func StartCluster(ctx context.Context, options Options, primaries int) (all []*Own, err error) {
	fleet := options.Fleet(ClusterSettings()...)
	fleet.Members, fleet.Linked, fleet.Ports = primaries, true, ClusterPorts
	if all, err = start(ctx, options, fleet); err != nil {
		return nil, err
	}
	if err := together(ctx, all, options.Password); err != nil {
		return nil, errors.Join(err, launch.Each(context.WithoutCancel(ctx), all, (*Own).Close))
	}
	return all, nil
}

// together joins the nodes and waits until every node sees the whole cluster.
func together(ctx context.Context, all []*Own, password string) error {
	ctx, cancel := context.WithTimeout(ctx, launch.StartTimeout)
	defer cancel()
	var nodes []Member
	for _, own := range all {
		client := redis.NewClient(clientOptions(own.Addr(), password))
		defer client.Close()
		nodes = append(nodes, Member{own.Addr(), client})
	}
	if err := Join(ctx, nodes); err != nil {
		return err
	}
	for _, n := range nodes {
		for err := n.Sees(ctx, len(nodes)); err != nil; err = n.Sees(ctx, len(nodes)) {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("wait until the cluster is complete: %w", err)
			}
		}
	}
	return nil
}
