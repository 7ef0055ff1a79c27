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

// clients are those of the stores: a lock compiles one of them.
var clients = []string{
	"github.com/redis/go-redis/v9", "go.etcd.io/etcd/client/v3", "github.com/jackc/pgx/v5",
	"github.com/go-zookeeper/zk",
}

// goPackage has the fields of go list for a package.
type goPackage struct {
	ImportPath string
	Standard   bool
	Deps       []string // all that is compiled for it
}

// listed are the packages of these patterns, and all that is compiled for them, by path.
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

// isLock reports whether a package is for services: a lock, or what locks share.
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

// compiled are the stores' clients that a lock compiles.
func compiled(packages map[string]goPackage, lock string) []string {
	return slices.DeleteFunc(slices.Clone(clients),
		func(client string) bool { return !slices.Contains(packages[lock].Deps, client) })
}

// strange are the packages that a service would compile with a lock and does not expect: it
// expects locks, the sleeps of those that poll, groups of goroutines, the client of the lock's own store with its
// imports, and what of the standard library is not for tools and tests.
func strange(packages map[string]goPackage, lock string) []string {
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

// Importing a lock compiles what a service has anyway.
func TestALockBringsItsStoresClientAndNothingElse(t *testing.T) {
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
		if found := strange(packages, path); len(found) > 0 {
			t.Errorf("importing %s compiles %s", path, strings.Join(found, ", "))
		}
	}
	// What does bring more is found.
	if all := compiled(packages, module+"strategies/all"); len(all) != len(clients) {
		t.Errorf("the package of all strategies compiles the clients %s", strings.Join(all, ", "))
	}
	for _, test := range []struct{ path, brings string }{
		{"strategies/peers", "github.com/go-redsync/redsync/v4"},
		{"strategies/locktest", "github.com/anishathalye/porcupine"},
		{"strategies/internal/trial", module + "internal/store/redis/servers"},
		{"strategies/internal/trial", "testing"},
	} {
		if found := strange(packages, module+test.path); !slices.Contains(found, test.brings) {
			t.Errorf("%s brings %s, and only %q were found", test.path, test.brings, found)
		}
	}
}
