package launch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// A server that loses its data has its address still.
func TestAnew(t *testing.T) {
	emptied := program(t)
	emptied.Empty = func(_ context.Context, p *Process) error { return os.Remove(filepath.Join(p.Dir(), "data")) }
	p, _ := start(t, emptied, FreePort)
	if err := os.WriteFile(filepath.Join(p.Dir(), "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	addr, pid := p.Addr(), p.PID()
	if err := p.Anew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := childOf(p); err != nil || p.Addr() != addr || p.PID() == pid {
		t.Errorf("it is at %s with %d, before at %s with %d: %v", p.Addr(), p.PID(), addr, pid, err)
	}
	if err := p.Anew(t.Context()); err == nil {
		t.Error("nothing was there to be removed, and nobody said so")
	}
}
