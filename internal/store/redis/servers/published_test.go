package servers

import (
	"context"
	"testing"

	"github.com/lockbench/lockbench/internal/launch"
)

// The published port is for machines whose Docker has a network of its own; it
// is tried here by hand, since on Linux the host's network comes first.
func TestPublishedPort(t *testing.T) {
	d := needDocker(t)
	image, err := d.Obtain(t.Context(), image(""), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	c, err := startContainer(t.Context(), d, Options{RunID: "test"}, image, "published port", launch.FreePort, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if !up(t, c.Addr()) {
		t.Error("no answer")
	}
	before := c.Addr()
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.Addr() != before || !up(t, before) {
		t.Errorf("after a restart it is at %s, not %s", c.Addr(), before)
	}
}
