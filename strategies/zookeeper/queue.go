package zookeeper

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// errNoPlace says that the caller's node is gone: its session has ended.
var errNoPlace = errors.New("the place in the queue is lost")

// place is a node in a lock's queue.
type place struct {
	session *session
	key     string
	lock    string // the path of the lock's node
	name    string
	token   int64
}

func (p place) named(name string) place {
	p.name = name
	return p
}

func (p place) path() string { return p.lock + "/" + p.name }

// wait queues, and returns when its node is the first.
func (l *Locker) wait(ctx context.Context, s *session, key string) (strategies.Lease, error) {
	p, err := l.enter(ctx, s, key)
	if err != nil {
		return nil, fmt.Errorf("queue for %q: %w", key, err)
	}
	l.config.Probe.Attempt()
	before, err := p.begin(ctx)
	for err == nil && before != "" {
		var woken bool
		if woken, err = p.behind(ctx, before); err != nil {
			break
		}
		if woken {
			l.config.Probe.Attempt()
		}
		before, err = p.before(ctx)
		if woken && err == nil {
			l.config.Probe.Wake(before == "")
		}
	}
	if err != nil {
		p.leave()
		return nil, fmt.Errorf("wait for %q: %w", key, err)
	}
	return l.granted(p)
}

// try takes the first place, or none.
func (l *Locker) try(ctx context.Context, s *session, key string) (strategies.Lease, error) {
	l.config.Probe.Attempt()
	queue, err := again(ctx, func() ([]string, error) { return s.Children(ctx, l.lockOf(key)) })
	switch {
	case errors.Is(err, zk.ErrNoNode):
	case err != nil:
		return nil, fmt.Errorf("look for who holds %q: %w", key, over(err))
	case len(queue) > 0:
		return nil, strategies.ErrHeld
	}
	p, err := l.enter(ctx, s, key)
	if err != nil {
		return nil, fmt.Errorf("try %q: %w", key, err)
	}
	before, err := p.begin(ctx)
	if err == nil && before == "" {
		return l.granted(p)
	}
	p.leave()
	if err != nil {
		return nil, fmt.Errorf("try %q: %w", key, err)
	}
	return nil, strategies.ErrHeld
}

// lockOf is the path of a lock's node.
func (l *Locker) lockOf(key string) string { return l.node.Path(l.config.Key(key)) }

// enter makes a node in the queue. If its caller waits no longer, the node is deleted in the
// background.
func (l *Locker) enter(ctx context.Context, s *session, key string) (place, error) {
	p := place{session: s, key: key, lock: l.lockOf(key)}
	if err := ctx.Err(); err != nil {
		return p, err
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails, by its documentation
	guid := "_c_" + hex.EncodeToString(id[:])
	type made struct {
		name string
		err  error
	}
	back := make(chan made)
	begun := s.Go(func(life context.Context) {
		name, err := p.create(life, guid)
		select {
		case back <- made{name, err}:
		case <-ctx.Done():
			if err == nil {
				_, _ = p.named(name).remove(life) // if this fails, it goes with the session
			}
		}
	})
	if !begun {
		return p, errNoPlace
	}
	select {
	case m := <-back:
		return p.named(m.name), m.err
	case <-ctx.Done():
		return p, ctx.Err()
	}
}

// create makes the node, and the lock's if there is none. If an answer is lost, it syncs with
// the leader and looks for the node that may have been made.
func (p place) create(ctx context.Context, guid string) (string, error) {
	for {
		path, err := p.session.Create(ctx, p.lock+"/"+guid+mark, nil, zk.FlagEphemeral|zk.FlagSequence)
		switch {
		case err == nil:
			return path[strings.LastIndexByte(path, '/')+1:], nil
		case errors.Is(err, zk.ErrNoNode):
			_, err = p.session.Create(ctx, p.lock, nil, zk.FlagContainer)
			if errors.Is(err, zk.ErrNoNode) {
				return "", fmt.Errorf("the root %q is not there: %w", p.lock[:strings.LastIndexByte(p.lock, '/')], err)
			}
			if err != nil && !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, gozk.ErrIndeterminate) {
				return "", over(err)
			}
		case errors.Is(err, gozk.ErrIndeterminate):
			name, err := p.find(ctx, guid)
			if name != "" || err != nil {
				return name, err
			}
		default:
			return "", over(err)
		}
	}
}

// find looks for a node whose name begins with guid; "" means that there is none.
func (p place) find(ctx context.Context, guid string) (string, error) {
	queue, err := again(ctx, func() ([]string, error) {
		if err := p.session.Sync(ctx, p.lock); err != nil {
			return nil, err
		}
		return p.session.Children(ctx, p.lock)
	})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", over(err)
	}
	for _, name := range queue {
		if strings.HasPrefix(name, guid) {
			return name, nil
		}
	}
	return "", nil
}

// begin looks at the queue for the first time, and asks for the token at the same time.
func (p *place) begin(ctx context.Context) (before string, err error) {
	type told struct {
		token int64
		err   error
	}
	back := make(chan told, 1)
	path := p.path()
	asked := p.session.Go(func(context.Context) {
		stat, err := again(ctx, func() (*zk.Stat, error) { return p.session.Stat(ctx, path) })
		if err != nil {
			back <- told{err: err}
			return
		}
		back <- told{token: stat.Czxid}
	})
	if !asked {
		return "", errNoPlace
	}
	before, err = p.before(ctx)
	token := <-back
	p.token = token.token
	if err == nil && token.err != nil {
		err = over(token.err)
	}
	return before, err
}

// before is the name of the node before this one; "" if this is the first.
func (p place) before(ctx context.Context) (string, error) {
	queue, err := again(ctx, func() ([]string, error) { return p.session.Children(ctx, p.lock) })
	if err != nil {
		return "", over(err)
	}
	before, there := ahead(p.name, queue)
	if !there {
		return "", errNoPlace
	}
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

// behind waits for the node before this one to go. It returns at once if that node has gone;
// woken is false then.
func (p place) behind(ctx context.Context, before string) (woken bool, err error) {
	path := p.lock + "/" + before
	watch, err := again(ctx, func() (<-chan zk.Event, error) { return p.session.Watch(ctx, path) })
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, over(err)
	}
	select {
	case <-watch:
		p.session.Seen(path, watch)
		return true, nil
	case <-p.session.Over():
		return false, errNoPlace
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// courtesy is how long a caller that gives up waits for the deletion of its node, which then
// goes on in the background.
const courtesy = 100 * time.Millisecond

// leave deletes the node, in the background if it takes long.
func (p place) leave() {
	gone := make(chan struct{})
	if !p.session.Go(func(life context.Context) {
		defer close(gone)
		_, _ = p.remove(life) // if this fails, it goes with the session
	}) {
		return // it goes with the session
	}
	select {
	case <-gone:
	case <-time.After(courtesy):
	}
}

// remove deletes the node, however often the connection breaks. It says whether the node was
// there; an error means that the session is over.
func (p place) remove(life context.Context) (there bool, err error) {
	asked := false
	_, err = again(life, func() (struct{}, error) {
		err := p.session.Delete(life, p.path())
		if errors.Is(err, gozk.ErrIndeterminate) {
			asked = true // the server may have deleted it
		}
		return struct{}{}, err
	})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, zk.ErrNoNode):
		return asked, nil
	}
	return false, err
}

// again repeats a request until it is answered: the library delays each until it is connected.
func again[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	for {
		answer, err := ask()
		if !errors.Is(err, gozk.ErrIndeterminate) || ctx.Err() != nil {
			return answer, err
		}
	}
}

// over turns the end of the session into errNoPlace.
func over(err error) error {
	if errors.Is(err, gozk.ErrOver) || errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("%w: %w", errNoPlace, err)
	}
	return err
}
