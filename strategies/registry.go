package strategies

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Strategy describes a lock: its Info at default options, its options and how to open a
// Locker. Define makes one.
type Strategy struct {
	Info     Info
	defaults any                               // a struct of its options
	refine   func(info Info, options any) Info // what it says of itself under these options
	open     func(c Config, options any) (Locker, error)
}

var registry struct {
	sync.RWMutex
	strategies map[string]Strategy
	wrappers   map[string]Wrapper
}

// Define describes a lock without making it known by name. defaults are its typed options
// with their default values (struct{}{} for none): exported fields with the tags
// `opt:"name"` and `help:"what it does"`. They are durations, strings, whole or other numbers, or
// bools. Define panics on a name that is malformed and on options that cannot be set. open takes
// the Config of its store, such as goredis.Config.
func Define[O, N any, L Locker](info Info, defaults O, open func(ConfigOf[N], O) (L, error)) Strategy {
	checkName(info.Name)
	_ = optionsOf(copied(defaults)) // it panics
	info.Package = cmp.Or(info.Package, reflect.TypeFor[O]().PkgPath())
	if info.Keys == nil {
		info.Keys = []string{"{key}"}
	}
	return Strategy{
		Info:     info,
		defaults: defaults,
		refine: func(info Info, options any) Info {
			if r, ok := options.(Refiner); ok {
				return r.Refine(info)
			}
			return info
		},
		open: func(c Config, options any) (Locker, error) {
			config, err := converted[N](c)
			if err != nil {
				return nil, err
			}
			return open(config, options.(O))
		},
	}
}

// Register makes a lock known by info.Name: Define and RegisterStrategy in one.
// It is meant for init functions and main, and panics on what either of them refuses.
func Register[O, N any, L Locker](info Info, defaults O, open func(ConfigOf[N], O) (L, error)) {
	RegisterStrategy(Define(info, defaults, open))
}

// RegisterStrategy makes strategies known by their names. It panics on a name that is taken
// or malformed, as database/sql does.
func RegisterStrategy(all ...Strategy) {
	for _, s := range all {
		register(&registry.strategies, s.Info.Name, s)
	}
}

// register enters something in one of the registry's maps.
func register[T any](in *map[string]T, name string, what T) {
	checkName(name)
	registry.Lock()
	defer registry.Unlock()
	_, strategy := registry.strategies[name]
	_, wrapper := registry.wrappers[name]
	if strategy || wrapper {
		panic(fmt.Sprintf("strategies: %q registered twice", name))
	}
	if *in == nil {
		*in = map[string]T{}
	}
	(*in)[name] = what
}

// checkName panics on a name that cannot be read from a list.
func checkName(name string) {
	if name == "" || strings.ContainsAny(name, ",=: ") {
		panic(fmt.Sprintf("strategies: malformed name %q", name))
	}
}

// Unlisted makes a variant of a strategy that is not registered: it can be run, but not found
// by name. It has no options, and like Define it panics on a malformed name.
func Unlisted[N any, L Locker](info Info, open func(ConfigOf[N]) (L, error)) Variant {
	none := struct{}{}
	s := Define(info, none, func(c ConfigOf[N], _ struct{}) (L, error) { return open(c) })
	return Variant{Strategy: s, decoded: none}
}

// All returns the registered strategies, ordered by name.
func All() []Strategy { return ordered(&registry.strategies) }

// ordered returns what is in one of the registry's maps.
func ordered[T any](in *map[string]T) []T {
	registry.RLock()
	defer registry.RUnlock()
	var all []T
	for _, name := range slices.Sorted(maps.Keys(*in)) {
		all = append(all, (*in)[name])
	}
	return all
}

// UnknownError says that no strategy of that name is registered.
type UnknownError struct {
	Name  string   // what was looked for
	Known []string // the names of all there are, in wrappers too
}

// Error names what was looked for. The known names are many: a program that talks to people
// suggests the nearest.
func (e *UnknownError) Error() string { return fmt.Sprintf("unknown strategy %q", e.Name) }

// Lookup finds a strategy by name, also one in a wrapper. The error is an *UnknownError,
// or says why the wrapper does not fit.
func Lookup(name string) (Strategy, error) {
	registry.RLock()
	defer registry.RUnlock()
	if s, ok := registry.strategies[name]; ok {
		return s, nil
	}
	before, inner, _ := strings.Cut(name, ":")
	w, wrapped := registry.wrappers[before]
	if s, ok := registry.strategies[inner]; ok && wrapped {
		return w.around(s)
	}
	return Strategy{}, &UnknownError{name, names()}
}

// names returns all names that Lookup knows; the registry is locked.
func names() []string {
	var names []string
	for name, s := range registry.strategies {
		names = append(names, name)
		for _, w := range registry.wrappers {
			if wrapped, err := w.around(s); err == nil {
				names = append(names, wrapped.Info.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}
