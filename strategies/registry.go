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
	refine   func(info Info, options any) Info // describes the strategy under these options
	open     func(c Config, options any) (Locker, error)
}

var registry struct {
	sync.RWMutex
	strategies map[string]Strategy
	wrappers   map[string]Wrapper
}

// Define describes a lock without registering its name. defaults are its typed options with their default values
// (struct{}{} for none): exported fields with the tags `opt:"name"` and `help:"what it does"`. Their types are
// durations, strings, integers, floats or bools. Define panics on a name that is malformed and on options that cannot
// be set. open takes the Config of its store, such as goredis.Config.
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

// Register defines a lock and registers it under info.Name; it combines Define and RegisterStrategy. It is meant for
// init functions and main, and panics when one of these two does.
func Register[O, N any, L Locker](info Info, defaults O, open func(ConfigOf[N], O) (L, error)) {
	RegisterStrategy(Define(info, defaults, open))
}

// RegisterStrategy registers strategies under their names. It panics on a name that is taken or malformed, as
// database/sql does.
func RegisterStrategy(all ...Strategy) {
	for _, s := range all {
		register(&registry.strategies, s.Info.Name, s)
	}
}

// register adds an entry to one of the registry's maps.
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

// checkName panics on a name that ParseVariants could not read from a list.
func checkName(name string) {
	if name == "" || strings.ContainsAny(name, ",=: ") {
		panic(fmt.Sprintf("strategies: malformed name %q", name))
	}
}

// Unlisted makes a variant of a strategy that is not registered: it runs, but Lookup does not find it. It has no
// options. Like Define, Unlisted panics on a malformed name.
func Unlisted[N any, L Locker](info Info, open func(ConfigOf[N]) (L, error)) Variant {
	none := struct{}{}
	s := Define(info, none, func(c ConfigOf[N], _ struct{}) (L, error) { return open(c) })
	return Variant{Strategy: s, decoded: none}
}

// All returns the registered strategies, ordered by name.
func All() []Strategy { return ordered(&registry.strategies) }

// ordered returns the values of one of the registry's maps, ordered by name.
func ordered[T any](in *map[string]T) []T {
	registry.RLock()
	defer registry.RUnlock()
	var all []T
	for _, name := range slices.Sorted(maps.Keys(*in)) {
		all = append(all, (*in)[name])
	}
	return all
}

// UnknownError is the error for a name that no registered strategy has.
type UnknownError struct {
	Name  string   // the name that was looked up
	Known []string // all names that Lookup finds, those with wrappers included
}

// Error gives the unknown name only, because Known is long: a command should suggest the nearest names.
func (e *UnknownError) Error() string { return fmt.Sprintf("unknown strategy %q", e.Name) }

// Lookup finds a strategy by name, also one in a wrapper. The error is an *UnknownError or the reason why the wrapper
// does not fit.
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

// names returns all names that Lookup finds. The caller holds the registry's mutex.
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
