package gozk_test

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/strategies/gozk"
)

func TestNames(t *testing.T) {
	seen := map[string]string{}
	for _, key := range []string{
		"", "%", "%25", ".", "..", "...", "a.b", "a/b", "/", "zookeeper", "zookeepers",
		"null\x00byte", "line\nbreak", "a b", "{a}:*?[x]",
		"schlüssel", "鍵", "🔑", "\xff\xfe", strings.Repeat("k/", 1024), "lockbench:{a:1:0}",
	} {
		name := gozk.Name(key)
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q are both called %s", key, other, name)
		}
		seen[name] = key
		if back, ok := gozk.Key(name); !ok || back != key {
			t.Errorf("%q is called %s, and that is %q", key, name, back)
		}
		if name == "" || strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, ".") || name == "zookeeper" {
			t.Errorf("%q is called %s", key, name)
		}
	}
	for _, name := range []string{"", "zookeeper", ".", "a%", "a%2", "a%2f", "%41", "schlüssel"} {
		if key, ok := gozk.Key(name); ok {
			t.Errorf("%q is the name of %q", name, key)
		}
	}
	if path := (gozk.Node{Root: "/locks"}).Path("a/b"); path != "/locks/a%2Fb" {
		t.Errorf("the path is %s", path)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a/b%\x00", "x")
	f.Fuzz(func(t *testing.T, key, other string) {
		name := gozk.Name(key)
		if back, ok := gozk.Key(name); !ok || back != key {
			t.Errorf("%q is called %s, and that is %q", key, name, back)
		}
		if again, ok := gozk.Key(other); ok && gozk.Name(again) != other {
			t.Errorf("%q is the name of %q, which is called %q", other, again, gozk.Name(again))
		}
	})
}
