package rueidislock

import (
	"context"
	"errors"
	"time"
)

// settling is how long a caller waits at most for a clean-up.
const settling = 5 * time.Second

// lockFunc is one of rueidislock's ways to lock.
type lockFunc func(context.Context, string) (context.Context, context.CancelFunc, error)

// result is what it returns.
type result struct {
	ctx     context.Context
	release context.CancelFunc
	err     error
}

// call is a running call of rueidislock. It is abandoned if it does not return: after a
// failed try rueidislock cleans up for as long as a TTL, if Redis does not answer.
type call struct {
	lasting   context.Context
	end       context.CancelCauseFunc
	result    chan result
	abandoned chan struct{}
}

func (c *call) run(name string, lock lockFunc) {
	var r result
	r.ctx, r.release, r.err = lock(c.lasting, name)
	select {
	case c.result <- r:
	case <-c.abandoned:
		if r.err == nil {
			r.release()
		}
		c.end(nil)
	}
}

// wait returns the result of the call, or why the call was abandoned.
func (c *call) wait() result {
	select {
	case r := <-c.result:
		return r
	case <-c.lasting.Done():
	}
	cause := context.Cause(c.lasting)
	if !errors.Is(cause, errLost) {
		timer := time.NewTimer(settling)
		defer timer.Stop()
		select {
		case r := <-c.result:
			return r
		case <-timer.C:
		}
	}
	close(c.abandoned)
	return result{err: cause}
}
