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

	decoded any
}

// ParseVariants reads a list such as "spin:backoff=fixed,base=5ms,pubsub": a
// part without "=" starts a new strategy. It reports every fault at once.
// "all" stands for every registered strategy that needs no other store than Redis.
func ParseVariants(list string) ([]Variant, error) {
	var variants []Variant
	var problems []error
	add := func(name string, settings map[string]string) {
		v, err := NewVariant(name, settings)
		if err != nil {
			problems = append(problems, err)
			return
		}
		variants = append(variants, v)
	}

	var name string
	var settings map[string]string
	flush := func() {
		switch {
		case name == "all" && len(settings) == 0:
			for _, s := range All() {
				if s.Info.Store == "" {
					add(s.Info.Name, nil)
				}
			}
		case name != "":
			add(name, settings)
		}
		name, settings = "", map[string]string{}
	}
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		setting, value, hasValue := strings.Cut(part, "=")
		if !hasValue {
			flush()
			name = part
			continue
		}
		if colon := strings.LastIndex(setting, ":"); colon >= 0 {
			flush()
			name, setting = setting[:colon], setting[colon+1:]
		}
		if name == "" {
			problems = append(problems, fmt.Errorf("option %q belongs to no strategy", part))
			continue
		}
		if _, twice := settings[setting]; twice {
			problems = append(problems, fmt.Errorf("strategy %s: option %q set twice", name, setting))
		}
		settings[setting] = value
	}
	flush()

	seen := map[string]bool{}
	variants = slices.DeleteFunc(variants, func(v Variant) bool {
		twice := seen[v.Name()]
		seen[v.Name()] = true
		return twice
	})
	if len(variants) == 0 && len(problems) == 0 {
		problems = append(problems, errors.New("no strategy named"))
	}
	return variants, errors.Join(problems...)
}

// NewVariant returns the registered strategy of that name with its options set. It reports
// every bad option at once.
func NewVariant(name string, settings map[string]string) (Variant, error) {
	s, err := Lookup(name)
	if err != nil {
		return Variant{}, err
	}
	return s.Variant(settings)
}

// Variant returns the strategy, registered or not, with its options set. It reports every bad
// option at once.
func (s Strategy) Variant(settings map[string]string) (Variant, error) {
	decoded, canonical, err := s.options.decode(settings)
	if err != nil {
		return Variant{}, prefixEach("strategy "+s.Info.Name, err)
	}
	return Variant{Strategy: s, Settings: canonical, decoded: decoded}, nil
}

// prefixEach puts the same words before every one of joined errors, so that each line
// can be read by itself.
func prefixEach(what string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s: %w", what, err)
	}
	var problems []error
	for _, problem := range joined.Unwrap() {
		problems = append(problems, prefixEach(what, problem))
	}
	return errors.Join(problems...)
}

// Name is canonical: the strategy's name, then what was set, ordered by option.
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

// Refiner is an options type that changes what its strategy promises: the number of permits,
// whether the watchdog runs.
type Refiner interface {
	Refine(Info) Info
}

// Info is what the strategy says of itself under these options.
func (v Variant) Info() Info { return v.Strategy.refine(v.Strategy.Info, v.decoded) }

// Open makes one instance's Locker.
func (v Variant) Open(config Config) (Locker, error) {
	if info := v.Info(); len(config.Nodes) < info.Nodes {
		return nil, fmt.Errorf("open %s: it needs %d nodes, there are %d", v.Name(), info.Nodes, len(config.Nodes))
	}
	locker, err := v.Strategy.open(config, v.decoded)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", v.Name(), err)
	}
	return locker, nil
}
