package strategies

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agnivade/levenshtein"
)

// Strategy is a registered strategy: its Info at default options, its options
// and how to open a Locker.
type Strategy struct {
	Info    Info
	options optionSet
	open    func(Config, any) (Locker, error)
}

var registry struct {
	sync.RWMutex
	byName map[string]Strategy
}

// Register makes a strategy known by info.Name. defaults are its typed options
// with their default values (struct{}{} for none): exported fields with the
// tags `opt:"name"` and `help:"what it does"`. It is meant for init functions
// and panics on a name that is taken or malformed, as database/sql does.
func Register[O any, L Locker](info Info, defaults O, open func(Config, O) (L, error)) {
	s := newStrategy(info, defaults, open)
	registry.Lock()
	defer registry.Unlock()
	if registry.byName == nil {
		registry.byName = map[string]Strategy{}
	}
	if _, taken := registry.byName[info.Name]; taken {
		panic(fmt.Sprintf("strategies: %q registered twice", info.Name))
	}
	registry.byName[info.Name] = s
}

func newStrategy[O any, L Locker](info Info, defaults O, open func(Config, O) (L, error)) Strategy {
	if info.Name == "" || strings.ContainsAny(info.Name, ",=: ") {
		panic(fmt.Sprintf("strategies: malformed name %q", info.Name))
	}
	return Strategy{
		Info:    info,
		options: newOptionSet(defaults),
		open:    func(c Config, o any) (Locker, error) { return open(c, o.(O)) },
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

// Lookup finds a strategy by name; an unknown name's error suggests the nearest
// known one.
func Lookup(name string) (Strategy, error) {
	registry.RLock()
	s, ok := registry.byName[name]
	registry.RUnlock()
	if ok {
		return s, nil
	}
	err := fmt.Errorf("unknown strategy %q", name)
	if near := nearest(name); near != "" {
		err = fmt.Errorf("%w, did you mean %q?", err, near)
	}
	return Strategy{}, err
}

// nearest returns the registered name closest to a mistyped one, or "" when
// nothing is close.
func nearest(name string) string {
	best, distance := "", len(name)/2+1
	for _, s := range All() {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), s.Info.Name); d < distance {
			best, distance = s.Info.Name, d
		}
	}
	return best
}

// Options describes the strategy's options and their defaults, in order.
func (s Strategy) Options() []Option { return s.options.describe() }
