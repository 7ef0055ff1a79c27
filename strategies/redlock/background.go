package redlock

import (
	"sync"
	"time"
)

// background owns the goroutines that may outlive the call that started them.
type background struct {
	mu       sync.Mutex
	refusing bool
	running  sync.WaitGroup
}

// start runs f in a goroutine; once closed it only returns false.
func (b *background) start(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refusing {
		return false
	}
	b.running.Go(f)
	return true
}

// run runs f in a goroutine. Once closed nobody but its caller waits for it.
func (b *background) run(f func()) {
	if !b.start(f) {
		go f()
	}
}

func (b *background) closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refusing
}

// close refuses new goroutines and waits for those that run. It calls stop after the grace,
// and at the end.
func (b *background) close(grace time.Duration, stop func()) {
	b.mu.Lock()
	b.refusing = true
	b.mu.Unlock()
	timer := time.AfterFunc(grace, stop)
	b.running.Wait()
	timer.Stop()
	stop()
}
