package strategies

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lockbench/lockbench/internal/nearest"
)

// Strategy is a registered strategy: its Info at default options, its options
// and how to open a Locker.
type Strategy struct {
	Info    Info
	options optionSet
	info    func(options any) Info // under these options
	open    func(c Config, options any) (Locker, error)
}

var registry struct {
	sync.RWMutex
	byName   map[string]Strategy
	wrappers map[string]Wrapper
}

// Register makes a strategy known by info.Name. defaults are its typed options
// with their default values (struct{}{} for none): exported fields with the
// tags `opt:"name"` and `help:"what it does"`. It is meant for init functions
// and panics on a name that is taken or malformed, as database/sql does.
func Register[O any, L Locker](info Info, defaults O, open func(Config, O) (L, error)) {
	s := newStrategy(info, defaults, open)
	registry.Lock()
	defer registry.Unlock()
	claim(info.Name)
	if registry.byName == nil {
		registry.byName = map[string]Strategy{}
	}
	registry.byName[info.Name] = s
}

// claim panics on a name that is taken; the registry is locked.
func claim(name string) {
	_, strategy := registry.byName[name]
	_, wrapper := registry.wrappers[name]
	if strategy || wrapper {
		panic(fmt.Sprintf("strategies: %q registered twice", name))
	}
}

// checkName panics on a name that a list could not be parsed with.
func checkName(name string) {
	if name == "" || strings.ContainsAny(name, ",=: ") {
		panic(fmt.Sprintf("strategies: malformed name %q", name))
	}
}

func newStrategy[O any, L Locker](info Info, defaults O, open func(Config, O) (L, error)) Strategy {
	checkName(info.Name)
	return Strategy{
		Info:    info,
		options: newOptionSet(defaults),
		info: func(o any) Info {
			if r, ok := o.(Refiner); ok {
				return r.Refine(info)
			}
			return info
		},
		open: func(c Config, o any) (Locker, error) { return open(c, o.(O)) },
	}
}

// Unlisted makes a variant of a strategy that is not registered: it can be run,
// and nobody finds it by name. It has no options, and like Register it panics on
// a malformed name.
func Unlisted[L Locker](info Info, open func(Config) (L, error)) Variant {
	none := struct{}{}
	s := newStrategy(info, none, func(c Config, _ struct{}) (L, error) { return open(c) })
	return Variant{Strategy: s, decoded: none}
}

// All returns the registered strategies, ordered by name.
func All() []Strategy {
	registry.RLock()
	defer registry.RUnlock()
	all := make([]Strategy, 0, len(registry.byName))
	for _, s := range registry.byName {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Strategy) int { return strings.Compare(a.Info.Name, b.Info.Name) })
	return all
}

// Lookup finds a strategy by name, also one in a wrapper; an unknown name's error
// suggests the nearest known one.
func Lookup(name string) (Strategy, error) {
	registry.RLock()
	s, ok := registry.byName[name]
	registry.RUnlock()
	if ok {
		return s, nil
	}
	if w, inner, ok := cutWrapper(name); ok {
		if s, err := Lookup(inner); err == nil {
			return w.around(s)
		}
	}
	return Strategy{}, fmt.Errorf("unknown strategy %q%s", name, nearest.Question("%q", name, names()))
}

// names are all that Lookup knows.
func names() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Info.Name)
		for _, w := range Wrappers() {
			if w.fits(s.Info) == nil {
				names = append(names, w.Name+":"+s.Info.Name)
			}
		}
	}
	return names
}

// Options describes the strategy's options and their defaults, in order.
func (s Strategy) Options() []Option { return s.options.describe() }
