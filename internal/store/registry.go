package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Redis is the name of the store that every program includes.
const Redis = "redis"

var registry struct {
	sync.RWMutex
	byName map[string]Store
}

// Register adds a store under the name with which strategies refer to it in Info.Store. Call it in an init function. It
// panics if the name is taken, as database/sql does.
func Register(name string, s Store) {
	registry.Lock()
	defer registry.Unlock()
	if _, taken := registry.byName[name]; taken {
		panic(fmt.Sprintf("store: %q registered twice", name))
	}
	if registry.byName == nil {
		registry.byName = map[string]Store{}
	}
	registry.byName[name] = s
}

// Lookup returns the store with the given name; "" means Redis. If there is no such store, the error wraps ErrConfig.
func Lookup(name string) (Store, error) {
	if name == "" {
		name = Redis
	}
	registry.RLock()
	defer registry.RUnlock()
	s, ok := registry.byName[name]
	if !ok {
		return nil,
			fmt.Errorf("%w: this program was built without the store %s (stores: %s): import "+
				"github.com/lockbench/lockbench/stores",
				ErrConfig, name, strings.Join(slices.Sorted(maps.Keys(registry.byName)), ", "))
	}
	return s, nil
}

// Names returns the names of all registered stores, sorted.
func Names() []string {
	registry.RLock()
	defer registry.RUnlock()
	return slices.Sorted(maps.Keys(registry.byName))
}

// At returns the name of the store to which an address belongs, according to the scheme of the address. An address
// without a scheme belongs to Redis. If no store of this program has the scheme, the error lists the known schemes.
func At(address string) (string, error) {
	first, _, _ := strings.Cut(address, ",") // an address without a scheme may precede one with a scheme
	scheme, _, isURL := strings.Cut(first, "://")
	if !isURL {
		return Redis, nil
	}
	var known []string
	for _, name := range Names() {
		kind, err := Lookup(name)
		if err != nil {
			return "", err
		}
		if slices.Contains(kind.Schemes(), scheme) {
			return name, nil
		}
		known = append(known, kind.Schemes()...)
	}
	if len(Names()) > 1 { // otherwise the store Redis reports which addresses it accepts
		return "", fmt.Errorf("no store has addresses that begin with %s:// (known schemes: %s)", scheme,
			strings.Join(known, ", "))
	}
	return Redis, nil
}

// Titled is a Store that has an official name for reports, such as PostgreSQL.
type Titled interface{ Title() string }

// Needer is a Store that lists the rights a user needs on its servers.
type Needer interface {
	// Needs returns the commands that grant the rights, one per line. keys is the prefix of all keys and channels of
	// lockbench.
	Needs(keys string) []string
}
