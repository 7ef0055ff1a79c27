package redlock

import (
	"context"
	"sync"
	"testing"
	"time"
)

// The caller is so late that the node timeout has passed when it reads the replies. Replies that have arrived by then
// must count.
func TestAnswersCountForALateCaller(t *testing.T) {
	t.Parallel()
	nodes := []*node{{name: "one"}, {name: "two"}, {name: "three"}}
	for range 20 {
		l, answered := new(Locker), new(sync.WaitGroup)
		answered.Add(len(nodes))
		late := func(_ tally, overtime bool) bool {
			if !overtime {
				answered.Wait()
				time.Sleep(5 * time.Millisecond)
			}
			return overtime
		}
		p := l.ask(t.Context(), nodes, time.Millisecond, late,
			func(context.Context, *node) (bool, error) { answered.Done(); return true, nil }, nil)
		if p.tally.yes != len(nodes) {
			t.Fatalf("%d of %d answers count", p.tally.yes, len(nodes))
		}
	}
}
