package servers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// order changes when a fault comes about and ends, so that what costs exclusion is an order
// of events and not a matter of seconds.
type order func(*pin, *Server, workloads.Fault, *store.Action)

// orderOf is that of an experiment with these faults.
func orderOf(faults []workloads.Fault) order {
	if faults[0].Name == workloads.NodeDown {
		return heldBesideNode(len(faults) > 1)
	}
	return held
}

// pin has a client that holds the only lock hold it until another holds it too.
type pin struct {
	mu      sync.Mutex
	holders int
	armed   bool          // the next who gets the lock is pinned
	pinned  chan struct{} // closed when a client is pinned
	forgot  chan struct{} // closed when a node has been made to forget the lock
	loose   chan struct{} // closed when there are two holders, or when there need not be
	let     func()        // closes loose
}

func newPin() *pin {
	loose := make(chan struct{})
	return &pin{
		pinned: make(chan struct{}), forgot: make(chan struct{}), loose: loose,
		let: sync.OnceFunc(func() { close(loose) }),
	}
}

func (p *pin) holding() {
	p.mu.Lock()
	p.holders++
	if p.holders > 1 {
		p.let()
	}
	mine := p.armed
	if mine {
		p.armed = false
		close(p.pinned)
	}
	p.mu.Unlock()
	if mine {
		_ = p.await(p.loose, "a second holder") // the experiment's check misses him
	}
}

func (p *pin) releasing() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holders--
}

func (p *pin) arm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = true
}

// await waits for an event, for not quite as long as a lease lasts.
func (p *pin) await(event <-chan struct{}, what string) error {
	select {
	case <-event:
		return nil
	case <-time.After(calm * 9 / 10):
		return fmt.Errorf("there was never %s", what)
	}
}

// held has a fault come about while somebody holds a lock that he got after it was
// prepared, as when a replica does not hear of it any more.
func held(p *pin, server *Server, fault workloads.Fault, action *store.Action) {
	hit := action.Hit
	action.Hit = func(ctx context.Context) error {
		p.arm()
		err := errors.Join(p.await(p.pinned, "a holder"), hit(ctx))
		if fault.Name == workloads.Failover {
			err = errors.Join(err, runOut(ctx, server.primary.Load()))
		}
		return err
	}
}

// runOut makes a node forget the locks that no client deleted, as if they had run out.
func runOut(ctx context.Context, n *node) error {
	keys, err := scan(ctx, n.observer, "*lockbench:*")
	if err != nil || len(keys) == 0 {
		return err
	}
	return n.observer.Del(ctx, keys...).Err()
}

// heldUntilOver is held, but the holder goes on once the fault has come about.
func heldUntilOver(p *pin, server *Server, fault workloads.Fault, action *store.Action) {
	held(p, server, fault, action)
	hit := action.Hit
	action.Hit = func(ctx context.Context) error {
		defer p.let()
		return hit(ctx)
	}
}

// heldBesideNode has a lock be taken while a node is down, and held until that is back. If
// there is another fault, it comes about in between.
func heldBesideNode(forgets bool) order {
	return func(p *pin, server *Server, fault workloads.Fault, action *store.Action) {
		hit, end := action.Hit, action.End
		if fault.Name != workloads.NodeDown {
			action.Hit = func(ctx context.Context) error {
				defer close(p.forgot)
				return errors.Join(p.await(p.pinned, "a holder"), hit(ctx))
			}
			return
		}
		down := server.nodes[fault.Node]
		action.Hit = func(ctx context.Context) error {
			err := hit(ctx)
			if down.observer.Ping(ctx).Err() == nil {
				err = errors.Join(err, errors.New("the node that is down answers"))
			}
			p.arm()
			return errors.Join(err, p.await(p.pinned, "a holder"))
		}
		action.End = func(ctx context.Context) error {
			var err error
			if forgets {
				err = p.await(p.forgot, "a node that forgot")
			} else {
				defer p.let()
				defer time.Sleep(time.Second) // others ask several times
			}
			return errors.Join(err, end(ctx), runOut(ctx, down))
		}
	}
}
