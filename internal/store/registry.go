package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Redis is the name of the store that every program has.
const Redis = "redis"

var registry struct {
	sync.RWMutex
	byName map[string]Store
}

// Register makes a store known by the name that strategies give in their Info. It is meant
// for init functions, and panics on a name that is taken, as database/sql does.
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

// Lookup finds a store by its name; "" is Redis. The error wraps ErrConfig.
func Lookup(name string) (Store, error) {
	if name == "" {
		name = Redis
	}
	registry.RLock()
	defer registry.RUnlock()
	s, ok := registry.byName[name]
	if !ok {
		return nil, fmt.Errorf("%w: this program has no store %s (it has %s): it would import github.com/lockbench/lockbench/stores",
			ErrConfig, name, strings.Join(slices.Sorted(maps.Keys(registry.byName)), ", "))
	}
	return s, nil
}

// Names are those of all stores, ordered.
func Names() []string {
	registry.RLock()
	defer registry.RUnlock()
	return slices.Sorted(maps.Keys(registry.byName))
}

// At is the name of the store that an address belongs to, by its scheme; Redis's addresses
// need none. Where this program has no such store the error says which it has.
func At(address string) (string, error) {
	scheme, _, isURL := strings.Cut(address, "://")
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
	if len(Names()) > 1 { // else Redis says what it takes
		return "", fmt.Errorf("no store has addresses that begin with %s:// (there are %s)", scheme, strings.Join(known, ", "))
	}
	return Redis, nil
}
