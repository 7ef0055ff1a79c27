package redlock

import (
	"context"
	"testing"
	"time"
)

// Answers that are there when the node timeout ends count: it may be the caller that is late.
func TestAnswersCountForALateCaller(t *testing.T) {
	t.Parallel()
	nodes := []*node{{name: "one"}, {name: "two"}, {name: "three"}}
	for range 20 {
		l := new(Locker)
		late := func(_ tally, overtime bool) bool {
			if !overtime {
				l.background.running.Wait() // all have answered
				time.Sleep(5 * time.Millisecond)
			}
			return overtime
		}
		p := l.ask(t.Context(), nodes, time.Millisecond, late,
			func(context.Context, *node) (bool, error) { return true, nil }, nil)
		if p.tally.yes != len(nodes) {
			t.Fatalf("%d of %d answers count", p.tally.yes, len(nodes))
		}
	}
}
