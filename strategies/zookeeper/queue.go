package zookeeper

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// errNoPlace says that the caller's node is gone: mostly its session has ended.
var errNoPlace = errors.New("the place in the queue is lost")

// place is a node in a lock's queue.
type place struct {
	session *session
	lock    string        // the path of the lock's node
	entered chan struct{} // closed when there is a node, or will be none
	name    string        // "" if there is no node
	token   int64
}

func (p *place) path() string { return p.lock + "/" + p.name }

// reach queues, and returns when the place is the first. Without wait it returns ErrHeld if
// another is before it. With an error it leaves the queue.
func (l *Locker) reach(ctx context.Context, p *place, wait bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.config.Probe.Attempt()
	err := p.enter(ctx)
	var before string
	if err == nil {
		before, err = p.look(ctx)
	}
	for err == nil && before != "" && wait {
		var woken bool
		if woken, err = p.watch(ctx, before); err == nil {
			if woken {
				l.config.Probe.Attempt()
			}
			before, err = p.look(ctx)
		}
		if woken && err == nil {
			l.config.Probe.Wake(before == "")
		}
	}
	if err == nil && before != "" {
		err = strategies.ErrHeld
	}
	if err != nil {
		p.leave()
	}
	return err
}

// enter makes a node in the queue. If ctx ends, that goes on in the background, since no request can be taken back.
func (p *place) enter(ctx context.Context) error {
	p.entered = make(chan struct{})
	var err error
	if !p.session.Go(func(life context.Context) {
		defer close(p.entered)
		err = p.create(life)
	}) {
		return errNoPlace
	}
	select {
	case <-p.entered:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// create makes the node, and the lock's if there is none. If an answer is lost, it looks for the
// node that may have been made, by the random part of its name.
func (p *place) create(life context.Context) error {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails, by its documentation
	guid := "_c_" + hex.EncodeToString(id[:])
	for {
		made, err := p.session.Create(life, p.lock+"/"+guid+mark, nil, zk.FlagEphemeral|zk.FlagSequence)
		switch {
		case err == nil:
			p.name = path.Base(made)
			return nil
		case errors.Is(err, gozk.ErrIndeterminate):
			if p.name, err = p.find(life, guid); p.name != "" || err != nil {
				return err
			}
		case errors.Is(err, zk.ErrNoNode):
			_, err = p.session.Create(life, p.lock, nil, zk.FlagContainer)
			if errors.Is(err, zk.ErrNoNode) {
				return fmt.Errorf("there is no node %q for locks", path.Dir(p.lock))
			}
			if err != nil && !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, gozk.ErrIndeterminate) {
				return over(err)
			}
		default:
			return over(err)
		}
	}
}

// find returns the node whose name begins with guid; "" if there is none. The server may lag
// behind the one that has made it.
func (p *place) find(life context.Context, guid string) (string, error) {
	err := again(life, func() error { return p.session.Sync(life, p.lock) })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", over(err)
	}
	queue, err := p.queue(life)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", over(err)
	}
	for _, name := range queue.Names {
		if strings.HasPrefix(name, guid) {
			return name, nil
		}
	}
	return "", nil
}

func (p *place) queue(ctx context.Context) (queue gozk.Children, err error) {
	err = again(ctx, func() error {
		queue, err = p.session.Children(ctx, p.lock)
		return err
	})
	return queue, err
}

// look returns the node before this one; "" if this is the first. Then the token is the last
// transaction that changed the queue: it precedes the deletion of this node, which the next
// holder must have seen to be the first.
func (p *place) look(ctx context.Context) (before string, err error) {
	queue, err := p.queue(ctx)
	if err != nil {
		return "", over(err)
	}
	before, there := ahead(p.name, queue.Names)
	if !there {
		return "", errNoPlace
	}
	p.token = queue.Last
	return before, nil
}

// ahead returns the name before a given one in a queue, "" if that is the first, and whether
// the given one is there.
func ahead(name string, queue []string) (before string, there bool) {
	mine, nearest := number(name), int32(0)
	for _, other := range queue {
		// By differences, because after the largest number come negative ones.
		switch d := mine - number(other); {
		case other == name:
			there = true
		case strings.Contains(other, mark) && d > 0 && (before == "" || d < nearest):
			before, nearest = other, d
		}
	}
	return before, there
}

// mark precedes the number in the name of a node in a queue.
const mark = "-lock-"

// number is a node's place, the end of its name.
func number(name string) int32 {
	_, digits, _ := strings.Cut(name, mark)
	n, _ := strconv.ParseInt(digits, 10, 32)
	return int32(n)
}

// watch waits for the node before this one to go. It returns at once if that node has gone;
// woken is false then.
func (p *place) watch(ctx context.Context, before string) (woken bool, err error) {
	var gone <-chan zk.Event
	err = again(ctx, func() error {
		gone, err = p.session.Watch(ctx, p.lock+"/"+before)
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, over(err)
	}
	select {
	case <-gone:
		return true, nil
	case <-p.session.Over():
		return false, errNoPlace
	case <-ctx.Done():
		return false, strategies.WaitEnded(ctx)
	}
}

// leave deletes the node, in the background if it takes long.
func (p *place) leave() {
	const courtesy = 100 * time.Millisecond
	gone := make(chan struct{})
	if p.session.Go(func(life context.Context) {
		defer close(gone)
		<-p.entered
		if p.name != "" {
			_, _ = p.remove(life) // if this fails, it goes with the session
		}
	}) {
		select {
		case <-gone:
		case <-time.After(courtesy):
		}
	}
}

// remove deletes the node, however often the connection breaks. It says whether the node was
// there; an error means that the session is over.
func (p *place) remove(life context.Context) (there bool, err error) {
	asked := false
	err = again(life, func() error {
		err := p.session.Delete(life, p.path())
		asked = asked || errors.Is(err, gozk.ErrIndeterminate) // the server may have deleted it
		return err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return asked, nil
	case errors.Is(err, gozk.ErrIndeterminate): // the session's life ended when the request had just failed
		err = fmt.Errorf("%w: %w", gozk.ErrOver, err)
	}
	return err == nil, err
}

// again repeats a request until it is answered: the library delays each until it is connected.
func again(ctx context.Context, ask func() error) error {
	for {
		if err := ask(); !errors.Is(err, gozk.ErrIndeterminate) || ctx.Err() != nil {
			return err
		}
	}
}

// over turns the end of the session into errNoPlace, and so the end of the lock's node.
func over(err error) error {
	if errors.Is(err, gozk.ErrOver) || errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("%w: %w", errNoPlace, err)
	}
	return err
}
