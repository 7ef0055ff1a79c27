package strategies

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Variant is a strategy with some of its options set, so that several variants
// of one strategy can run side by side.
type Variant struct {
	Strategy Strategy
	Settings map[string]string // option name to value, as the option writes it
	// Parts are the two parts of a mixed strategy (see Mix). Any other variant has no parts.
	Parts []Variant

	decoded any
}

// ParseVariants reads a list such as "spin:backoff=fixed,base=5ms,pubsub". An element without "=", or with a ":",
// starts a new strategy. A "+" separates the parts of a mixed strategy (see Mix). "all" means every registered strategy
// that needs no store other than Redis. The error joins all errors in the list.
func ParseVariants(list string) ([]Variant, error) { return ParseWith(list, NewVariant) }

// ParseWith is like ParseVariants, but finds each strategy by calling find instead of NewVariant.
func ParseWith(
	list string, find func(name string, settings map[string]string) (Variant, error),
) (variants []Variant, err error) {
	named, problems := split(list)
	for _, n := range named {
		names := []string{n.name}
		if n.name == "all" && len(n.settings) == 0 && n.with == nil {
			names = onRedis()
		}
		for _, name := range names {
			v, err := find(name, n.settings)
			if n.with != nil {
				other, wrong := find(n.with.name, n.with.settings)
				if err = errors.Join(err, wrong); err == nil {
					v, err = Mix(v, other)
				}
			}
			twice := func(other Variant) bool { return other.Name() == v.Name() }
			if err != nil {
				problems = append(problems, err)
			} else if !slices.ContainsFunc(variants, twice) {
				variants = append(variants, v)
			}
		}
	}
	if len(variants) == 0 && len(problems) == 0 {
		problems = append(problems, errors.New("no strategy named"))
	}
	return variants, errors.Join(problems...)
}

// onRedis returns the names of all registered strategies that need no store other than Redis.
func onRedis() []string {
	var names []string
	for _, s := range All() {
		if s.Info.Store == "" {
			names = append(names, s.Info.Name)
		}
	}
	return names
}

// named is a strategy's name with its settings as the user wrote them.
type named struct {
	name     string
	settings map[string]string
	with     *named // the second part of a mixed strategy
}

// split returns the strategies in a list with their settings. problems contains an error for each option without a
// strategy, each + without a strategy, and each option that is set twice.
func split(list string) (all []*named, problems []error) {
	var last *named // the strategy to which the next option belongs
	add := func(text string, second bool) {
		setting, value, hasValue := strings.Cut(text, "=")
		name := setting
		if hasValue {
			colon := strings.LastIndex(setting, ":")
			name, setting = setting[:max(colon, 0)], setting[colon+1:]
		}
		this := &named{name, map[string]string{}, nil}
		switch {
		case second && (name == "" || len(all) == 0 || last != all[len(all)-1]):
			problems = append(problems, fmt.Errorf("%q: a + is allowed only between two strategies, not before %q", list, text))
			return
		case second:
			last.with, last = this, this
		case name != "":
			all, last = append(all, this), this
		}
		if !hasValue {
			return
		}
		if last == nil {
			problems = append(problems, fmt.Errorf("option %q has no strategy before it", text))
			return
		}
		if _, twice := last.settings[setting]; twice {
			problems = append(problems, fmt.Errorf("strategy %s: option %q is set twice", last.name, setting))
		}
		last.settings[setting] = value
	}
	for part := range strings.SplitSeq(list, ",") {
		for i, text := range strings.Split(part, "+") {
			add(strings.TrimSpace(text), i > 0)
		}
	}
	return all, problems
}

// NewVariant returns the strategy that is registered under name, with the given settings. The error joins the errors of
// all settings.
func NewVariant(name string, settings map[string]string) (Variant, error) {
	s, err := Lookup(name)
	if err != nil {
		return Variant{}, err
	}
	return s.Variant(settings)
}

// Variant returns the strategy with the given settings. The strategy need not be registered. The error joins the errors
// of all settings.
func (s Strategy) Variant(settings map[string]string) (Variant, error) {
	decoded, canonical, err := s.decode(settings)
	if err != nil {
		var problems []error // one for each line, so that each names the strategy
		for fault := range strings.SplitSeq(err.Error(), "\n") {
			problems = append(problems, fmt.Errorf("strategy %s: %s", s.Info.Name, fault))
		}
		return Variant{}, errors.Join(problems...)
	}
	return Variant{Strategy: s, Settings: canonical, decoded: decoded}, nil
}

// Name returns the canonical name: the strategy's name, then the options that were set, ordered by name.
func (v Variant) Name() string {
	if len(v.Settings) == 0 {
		return v.Strategy.Info.Name
	}
	var parts []string
	for _, option := range slices.Sorted(maps.Keys(v.Settings)) {
		parts = append(parts, option+"="+v.Settings[option])
	}
	return v.Strategy.Info.Name + ":" + strings.Join(parts, ",")
}

// Refiner is implemented by an options type whose values change the strategy's Info, such as the number of permits or
// the use of a watchdog.
type Refiner interface {
	Refine(Info) Info
}

// Info returns the strategy's Info under the variant's options.
func (v Variant) Info() Info { return v.Strategy.refine(v.Strategy.Info, v.decoded) }

// Open opens the Locker of one application instance. It returns an error if the config has fewer nodes than the
// strategy needs.
func (v Variant) Open(config Config) (Locker, error) {
	if info := v.Info(); len(config.Nodes) < info.Nodes {
		return nil, fmt.Errorf("open %s: the strategy needs %d nodes, not %d", v.Name(), info.Nodes, len(config.Nodes))
	}
	locker, err := v.Strategy.open(config, v.decoded)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", v.Name(), err)
	}
	return locker, nil
}
