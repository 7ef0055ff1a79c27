package zookeeper

import "testing"

// Close ends a session without leases: a lease that comes at the same time is either counted
// before, or not granted.
func TestNoLeaseAfterClose(t *testing.T) {
	l, s := &Locker{}, &session{}
	if !l.holds(s) || s.leases != 1 {
		t.Errorf("it holds %d leases, want one", s.leases)
	}
	l.released(s)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l.holds(s) || s.leases != 0 {
		t.Errorf("after Close it holds %d leases, want none", s.leases)
	}
}
