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

// order changes the action of a fault, so that the fault begins and ends after certain events. Whether an experiment
// loses mutual exclusion then depends on the order of the events and not on their times.
type order func(*pin, *Server, workloads.Fault, *store.Action)

// orderOf returns the order with which these faults can break mutual exclusion.
func orderOf(faults []workloads.Fault) order {
	if faults[0].Name == workloads.NodeDown {
		return heldWhileNodeDown(len(faults) > 1)
	}
	return held
}

// pin makes one holder of the lock keep it until a second client holds it too. The experiment has only one lock.
type pin struct {
	mu      sync.Mutex
	holders int
	armed   bool          // the next client that acquires the lock is pinned
	pinned  chan struct{} // closed when a client is pinned
	forgot  chan struct{} // closed when a node has been made to forget the lock
	loose   chan struct{} // closed when there are two holders, or when the pinned client may release without that
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
		_ = p.await(p.loose, "a second holder") // without one, the experiment's check fails
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

// await waits until event is closed. After nine tenths of calm it returns an error, in which what names the event. A
// lease that began with the call and has the TTL calm has not ended by then.
func (p *pin) await(event <-chan struct{}, what string) error {
	select {
	case <-event:
		return nil
	case <-time.After(calm * 9 / 10):
		return fmt.Errorf("there was never %s", what)
	}
}

// held lets the fault begin once a client holds a lock that it acquired after the fault was prepared. A replica that
// the fault has detached has not received this lock.
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

// runOut deletes the run's locks on node n, as if they had expired.
func runOut(ctx context.Context, n *node) error {
	keys, err := scan(ctx, n.observer, "*lockbench:*")
	if err != nil || len(keys) == 0 {
		return err
	}
	return n.observer.Del(ctx, keys...).Err()
}

// heldUntilOver is like held, but the holder may release the lock once the fault has begun, without a second holder.
func heldUntilOver(p *pin, server *Server, fault workloads.Fault, action *store.Action) {
	held(p, server, fault, action)
	hit := action.Hit
	action.Hit = func(ctx context.Context) error {
		defer p.let()
		return hit(ctx)
	}
}

// heldWhileNodeDown lets a client acquire a lock while a node is down, and keep it until the node is back. If forgets
// is true, another node forgets the lock before the first node is back.
func heldWhileNodeDown(forgets bool) order {
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
				defer time.Sleep(time.Second) // other clients try several times
			}
			return errors.Join(err, end(ctx), runOut(ctx, down))
		}
	}
}
