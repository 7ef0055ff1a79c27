package launch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestOwner(t *testing.T) {
	here := thisProcess("test")
	if here.dead() {
		t.Error("we live")
	}
	change := func(change func(*owner)) owner {
		o := here
		change(&o)
		return o
	}
	for name, test := range map[string]struct {
		owner owner
		dead  bool
	}{
		"the pid is another's now": {change(func(o *owner) { o.Started += "1" }), true},
		"nobody has the pid":       {change(func(o *owner) { o.PID = 1 << 30 }), true},
		"before a reboot":          {change(func(o *owner) { o.Boot += "x" }), true},
		"another host":             {change(func(o *owner) { o.Host += "x"; o.PID = 1 << 30 }), false},
		"another pid namespace":    {change(func(o *owner) { o.Namespace += "x"; o.PID = 1 << 30 }), false},
		"no owner at all":          {owner{}, false},
	} {
		if test.owner.dead() != test.dead {
			t.Errorf("%s: dead = %v", name, !test.dead)
		}
	}
}

// A directory without an owner may be one that is just being made.
func TestDirectoryWithoutOwner(t *testing.T) {
	dir := t.TempDir()
	if abandons(dir) {
		t.Error("a new directory counts as abandoned")
	}
	hourAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir, hourAgo, hourAgo); err != nil {
		t.Fatal(err)
	}
	if !abandons(dir) {
		t.Error("an old directory without an owner does not count as abandoned")
	}
	if abandons(filepath.Join(t.TempDir(), "gone")) {
		t.Error("a missing directory counts as abandoned")
	}
}

func abandons(dir string) bool {
	_, is := abandoned(dir)
	return is
}
