package zookeeper

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// reach joins the queue and returns when the lease's node is the first. If wait is false and another node is first,
// reach returns ErrHeld. After an error, reach leaves the queue. If the node is lost, usually with its session, the
// error is gozk.ErrOver or zk.ErrNoNode.
func (h *lease) reach(ctx context.Context, wait bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	probe := h.locker.config.Probe
	probe.Attempt()
	err := h.enter(ctx)
	var before string
	if err == nil {
		before, err = h.readPredecessor(ctx)
	}
	for err == nil && before != "" && wait {
		var woken bool
		if woken, err = h.watch(ctx, before); err == nil {
			if woken {
				probe.Attempt()
			}
			before, err = h.readPredecessor(ctx)
		}
		if woken && err == nil {
			probe.Wake(before == "")
		}
	}
	if err == nil && before != "" {
		err = strategies.ErrHeld
	}
	if err != nil {
		h.leave()
	}
	return err
}

// enter creates a node in the queue. If ctx ends, the creation continues in the background, because a request cannot be
// withdrawn.
func (h *lease) enter(ctx context.Context) error {
	h.entered = make(chan struct{})
	var err error
	if !h.session.Go(func(life context.Context) {
		defer close(h.entered)
		err = h.create(life)
	}) {
		return gozk.ErrOver
	}
	select {
	case <-h.entered:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// create creates the lease's node, and its parent, the lock's node, if that does not exist yet. If a reply is lost,
// create searches for the node that may have been created, by the random part of its name.
func (h *lease) create(life context.Context) error {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails, by its documentation
	guid := "_c_" + hex.EncodeToString(id[:])
	for {
		made, err := h.session.Create(life, h.lock+"/"+guid+mark, nil, zk.FlagEphemeral|zk.FlagSequence)
		switch {
		case err == nil:
			h.name = path.Base(made)
			return nil
		case errors.Is(err, gozk.ErrIndeterminate):
			if h.name, err = h.find(life, guid); h.name != "" || err != nil {
				return err
			}
		case errors.Is(err, zk.ErrNoNode):
			_, err = h.session.Create(life, h.lock, nil, zk.FlagContainer)
			if errors.Is(err, zk.ErrNoNode) {
				return fmt.Errorf("the parent node %q of the locks does not exist", path.Dir(h.lock))
			}
			if err != nil && !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, gozk.ErrIndeterminate) {
				return err
			}
		default:
			return err
		}
	}
}

// find returns the node whose name begins with guid; "" if there is none. It synchronizes first, because the session's
// server may lag behind the server that created the node.
func (h *lease) find(life context.Context, guid string) (string, error) {
	var queue gozk.Children
	err := h.session.Sync(life, h.lock)
	if err == nil {
		queue, err = h.session.Children(life, h.lock)
	}
	if errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	at := slices.IndexFunc(queue.Names, func(name string) bool { return strings.HasPrefix(name, guid) })
	if err != nil || at < 0 {
		return "", err
	}
	return queue.Names[at], nil
}

// readPredecessor returns the node before the lease's node in the queue; "" if the lease's node is the first. It sets
// the token to the last transaction that changed the queue. The next holder gets a larger token, because its node
// becomes the first only after the transaction that deletes the lease's node.
func (h *lease) readPredecessor(ctx context.Context) (before string, err error) {
	queue, err := h.session.Children(ctx, h.lock)
	if err != nil {
		return "", err
	}
	before, there := ahead(h.name, queue.Names)
	if !there {
		return "", zk.ErrNoNode
	}
	h.token = queue.Last
	return before, nil
}

// ahead returns the name that directly precedes name in a queue, or "" if name is the first. there is false if the
// queue does not contain name.
func ahead(name string, queue []string) (before string, there bool) {
	mine, nearest := number(name), int32(0)
	for _, other := range queue {
		// Numbers are compared by their difference, because ZooKeeper's counter continues with negative numbers after the
		// largest number.
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

// number returns the number at the end of a node's name.
func number(name string) int32 {
	_, digits, _ := strings.Cut(name, mark)
	n, _ := strconv.ParseInt(digits, 10, 32)
	return int32(n)
}

// watch waits until the node named before is deleted. It returns at once, with woken false, if that node no longer
// exists.
func (h *lease) watch(ctx context.Context, before string) (woken bool, err error) {
	gone, err := h.session.Watch(ctx, h.lock+"/"+before)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	select {
	case <-gone:
		return true, nil
	case <-h.session.Over():
		return false, gozk.ErrOver
	case <-ctx.Done():
		return false, strategies.WaitEnded(ctx)
	}
}

// leave deletes the node. If there is no reply within 100 ms, leave returns, and the deletion continues in the
// background.
func (h *lease) leave() {
	const courtesy = 100 * time.Millisecond
	gone := make(chan struct{})
	if h.session.Go(func(life context.Context) {
		defer close(gone)
		<-h.entered
		if h.name != "" {
			_ = h.session.Delete(life, h.path()) // if this fails, the node ends with the session
		}
	}) {
		select {
		case <-gone:
		case <-time.After(courtesy):
		}
	}
}
