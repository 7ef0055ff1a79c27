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

// Strategy describes a lock: its Info under default options, its options and how to open a Locker. Define returns a
// Strategy.
type Strategy struct {
	Info     Info
	defaults any                               // a struct with the default values of its options
	refine   func(info Info, options any) Info // describes the strategy under these options
	open     func(c Config, options any) (Locker, error)
}

var registry struct {
	sync.RWMutex
	strategies map[string]Strategy
	wrappers   map[string]Wrapper
}

// Define describes a lock without registering its name. defaults is a struct with the lock's options and their default
// values; struct{}{} means no options. An option is an exported field with the tags
// `opt:"name" help:"what it does"`. Its type is time.Duration, a string type, int, float64 or bool. Define panics if
// the name is malformed or an option has another type. open takes the Config of the strategy's store, such as
// goredis.Config.
func Define[O, N any, L Locker](info Info, defaults O, open func(ConfigOf[N], O) (L, error)) Strategy {
	checkName(info.Name)
	_ = optionsOf(copied(defaults)) // panics on an option of another type
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

// Register defines a lock by Define and registers it under info.Name by RegisterStrategy. It is meant for init
// functions and main, and panics when Define or RegisterStrategy panics.
func Register[O, N any, L Locker](info Info, defaults O, open func(ConfigOf[N], O) (L, error)) {
	RegisterStrategy(Define(info, defaults, open))
}

// RegisterStrategy registers strategies under their names. It panics if a name is malformed or, like sql.Register, if a
// name is taken.
func RegisterStrategy(all ...Strategy) {
	for _, s := range all {
		register(&registry.strategies, s.Info.Name, s)
	}
}

// register adds an entry to one of the registry's maps. It panics if a strategy or a wrapper has the same name.
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

// checkName panics if the name is empty or contains a character that ParseVariants treats as a separator.
func checkName(name string) {
	if name == "" || strings.ContainsAny(name, ",=: ") {
		panic(fmt.Sprintf("strategies: malformed name %q", name))
	}
}

// Unlisted returns a variant of an unregistered strategy without options. The variant can run, but Lookup does not find
// its strategy. Like Define, Unlisted panics if the name is malformed.
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
	Known []string // all names that Lookup finds, including those with wrappers
}

// Error returns only the unknown name, because Known is long. A command should suggest the nearest names in Known.
func (e *UnknownError) Error() string { return fmt.Sprintf("unknown strategy %q", e.Name) }

// Lookup finds a strategy by its name, or by WRAPPER:NAME. The error is an *UnknownError, or the error of the wrapper's
// Refine.
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
