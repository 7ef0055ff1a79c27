package merge

import (
	"testing"

	"github.com/lockbench/lockbench/results"
)

// The merged report says what the other stores were.
func TestOtherStoresStay(t *testing.T) {
	a, b := generatorFile(t, "a", 1), generatorFile(t, "b", 2)
	for _, f := range []File{a, b} {
		f.Stores = []results.Store{{Name: "etcd", Server: results.Redis{Version: "3.5.1"}}}
	}
	if got := merged(t, a, b).Stores; len(got) != 1 || got[0].Server.Version != "3.5.1" {
		t.Errorf("%+v", got)
	}
}
