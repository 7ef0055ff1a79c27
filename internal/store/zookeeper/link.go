package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/strategies/gozk"
)

// presence is the parent of a node for each connection, with the connection's name: ZooKeeper has no
// names for connections.
const presence = "lockbench:connections"

// linkTimeout is the timeout of lockbench's own sessions: this long after a kill, others know that it is
// dead.
const linkTimeout = 4 * time.Second

// link is a session of lockbench's own, under a name that others can see. It is replaced when the server
// ends it.
type link struct {
	node gozk.Node
	name string

	mu      sync.Mutex
	session *gozk.Session
	mine    string // the path of the node with the name
}

func openLink(ctx context.Context, node gozk.Node, name string) (*link, error) {
	k := &link{node: node, name: name}
	_, err := k.live(ctx)
	return k, err
}

// live returns the session, or a new one if it has ended.
func (k *link) live(ctx context.Context) (*gozk.Session, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session != nil {
		select {
		case <-k.session.Over():
		default:
			return k.session, nil
		}
	}
	session, err := k.node.Connect(ctx, linkTimeout)
	if err != nil {
		return nil, err
	}
	mine, err := k.appear(ctx, session)
	if err != nil {
		session.Close()
		return nil, err
	}
	k.session, k.mine = session, mine
	return session, nil
}

// appear creates the node with the name.
func (k *link) appear(ctx context.Context, session *gozk.Session) (string, error) {
	all := k.node.Path(presence)
	for {
		mine, err := session.Create(ctx, all+"/"+gozk.Name(k.name)+"-", nil, zk.FlagEphemeral|zk.FlagSequence)
		if err == nil {
			return mine, nil
		}
		if errors.Is(err, zk.ErrNoNode) {
			if _, err = session.Create(ctx, all, nil, zk.FlagContainer); err == nil || errors.Is(err, zk.ErrNodeExists) {
				continue
			}
		}
		if errors.Is(err, zk.ErrNoNode) {
			return "", fmt.Errorf("there is no node %s: %w", k.node.Root, err)
		}
		return "", fmt.Errorf("make a node below %s/: %w", k.node.Root, err)
	}
}

// renew opens a new session: a server that lost its data does not know the old one.
func (k *link) renew(ctx context.Context) error {
	k.mu.Lock()
	if k.session != nil {
		k.session.Abandon()
		k.session = nil
	}
	k.mu.Unlock()
	_, err := k.live(ctx)
	return err
}

// close ends the session. It deletes the parent node too, if no other name is left.
func (k *link) close(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	// Both may fail if no server answers: then the node ends with the session, and the container
	// some time later.
	if k.session.Delete(ctx, k.mine) == nil {
		_ = k.session.Delete(ctx, k.node.Path(presence))
	}
	k.session.Close()
	k.session = nil
}

// names returns the names of all connections, each once.
func (k *link) names(ctx context.Context) ([]string, error) {
	session, err := k.live(ctx)
	if err != nil {
		return nil, err
	}
	if !k.node.Standalone { // this server may lag behind the others
		if err := session.Sync(ctx, k.node.Path(presence)); err != nil {
			return nil, err
		}
	}
	children, err := session.Children(ctx, k.node.Path(presence))
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	var names []string
	for _, child := range children {
		number := strings.LastIndexByte(child, '-')
		if number < 0 {
			continue
		}
		if name, ok := gozk.Key(child[:number]); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
