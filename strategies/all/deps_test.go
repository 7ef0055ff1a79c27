package all_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/lockbench/lockbench/"

// clients are the modules of the stores' client libraries. A lock may depend on at most one of these modules.
var clients = []string{
	"github.com/redis/go-redis/v9", "go.etcd.io/etcd/client/v3", "github.com/jackc/pgx/v5",
	"github.com/go-zookeeper/zk",
}

// goPackage is one package in the JSON output of go list.
type goPackage struct {
	ImportPath string
	Standard   bool
	Deps       []string // import paths of all its dependencies
}

// listed returns, by import path, the packages that match the patterns and all dependencies of these packages.
func listed(t *testing.T, patterns ...string) map[string]goPackage {
	t.Helper()
	var faults strings.Builder
	list := exec.CommandContext(t.Context(), "go",
		append([]string{"list", "-deps", "-json=ImportPath,Standard,Deps"}, patterns...)...)
	list.Stderr = &faults
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, faults.String())
	}
	all := map[string]goPackage{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}

// isLock reports whether the package with this import path is a lock, or code that locks share. Services may import
// these packages.
func isLock(path string) bool {
	below, ok := strings.CutPrefix(path, module+"strategies")
	switch {
	case !ok:
		return false
	case strings.HasPrefix(below, "/all"), strings.HasPrefix(below, "/peers"), strings.HasPrefix(below, "/locktest"):
		return false
	}
	return below != "/internal/trial"
}

// compiled returns the stores' client libraries on which a lock depends.
func compiled(packages map[string]goPackage, lock string) []string {
	return slices.DeleteFunc(slices.Clone(clients),
		func(client string) bool { return !slices.Contains(packages[lock].Deps, client) })
}

// unexpectedDependencies returns the dependencies of a lock that a service would not expect. A service expects other
// locks, package pause, errgroup, the client of the lock's own store with the client's dependencies, and the standard
// library except testing and go/....
func unexpectedDependencies(packages map[string]goPackage, lock string) []string {
	expected := map[string]bool{module + "internal/pause": true, "golang.org/x/sync/errgroup": true}
	for path, p := range packages {
		for _, client := range compiled(packages, lock) {
			if path == client || strings.HasPrefix(path, client+"/") {
				expected[path] = true
				for _, dep := range p.Deps {
					expected[dep] = true
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(packages[lock].Deps), func(dep string) bool {
		tool := dep == "testing" || strings.HasPrefix(dep, "testing/") || strings.HasPrefix(dep, "go/")
		return expected[dep] || isLock(dep) || packages[dep].Standard && !tool
	})
}

// A lock must depend on the client of at most one store, and on no package that unexpectedDependencies returns.
func TestLockImportsOnlyItsStoreClient(t *testing.T) {
	t.Parallel()
	packages := listed(t, module+"strategies/...")
	for _, lock := range []string{
		"handoff", "polled", "redisson", "redlock", "semaphore", "lock", "etcd",
		"postgres", "zookeeper",
	} {
		if _, ok := packages[module+"strategies/"+lock]; !ok {
			t.Errorf("there is no %s", lock)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		if !isLock(path) {
			continue
		}
		if stores := compiled(packages, path); len(stores) > 1 {
			t.Errorf("importing %s compiles the clients of several stores: %s", path, strings.Join(stores, ", "))
		}
		if found := unexpectedDependencies(packages, path); len(found) > 0 {
			t.Errorf("importing %s compiles %s", path, strings.Join(found, ", "))
		}
	}
	// As a counter-check, both functions must report the dependencies of packages that are not locks and import more than
	// a lock may.
	if all := compiled(packages, module+"strategies/all"); len(all) != len(clients) {
		t.Errorf("the package of all strategies compiles the clients %s", strings.Join(all, ", "))
	}
	for _, test := range []struct{ path, brings string }{
		{"strategies/peers", "github.com/go-redsync/redsync/v4"},
		{"strategies/locktest", "github.com/anishathalye/porcupine"},
		{"strategies/internal/trial", module + "internal/store/redis/servers"},
		{"strategies/internal/trial", "testing"},
	} {
		if found := unexpectedDependencies(packages, module+test.path); !slices.Contains(found, test.brings) {
			t.Errorf("%s brings %s, and only %q were found", test.path, test.brings, found)
		}
	}
}
