package strategies

import (
	"fmt"
	"slices"
	"strings"
)

// Wrapper makes another strategy of a registered one. It is named WRAPPER:NAME and takes
// NAME's options.
type Wrapper struct {
	Name    string // as on the command line, before the colon
	Summary string // one line: what it does to NAME
	Claims  string // in words: what is left of NAME's guarantees
	Doc     string // all there is to know, put before NAME's; as Info.Doc

	// Fits says why a strategy cannot be wrapped; nil fits all.
	Fits func(Info) error
	// Refine returns what the wrapped strategy says of itself. The name is filled in
	// afterwards.
	Refine func(Info) Info
	// Wrap puts the wrapper around one instance's Locker, which it closes.
	Wrap func(Locker) Locker
}

// RegisterWrapper makes a wrapper known by its name. It panics on a name that is taken or
// malformed.
func RegisterWrapper(w Wrapper) {
	checkName(w.Name)
	registry.Lock()
	defer registry.Unlock()
	claim(w.Name)
	if registry.wrappers == nil {
		registry.wrappers = map[string]Wrapper{}
	}
	registry.wrappers[w.Name] = w
}

// Wrappers returns the registered wrappers, ordered by name.
func Wrappers() []Wrapper {
	registry.RLock()
	defer registry.RUnlock()
	var all []Wrapper
	for _, w := range registry.wrappers {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b Wrapper) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// cutWrapper splits gated:NAME.
func cutWrapper(name string) (w Wrapper, inner string, ok bool) {
	before, inner, ok := strings.Cut(name, ":")
	if !ok {
		return Wrapper{}, "", false
	}
	registry.RLock()
	defer registry.RUnlock()
	w, ok = registry.wrappers[before]
	return w, inner, ok
}

func (w Wrapper) fits(info Info) error {
	if w.Fits == nil {
		return nil
	}
	return w.Fits(info)
}

// around returns the wrapped strategy.
func (w Wrapper) around(s Strategy) (Strategy, error) {
	name := w.Name + ":" + s.Info.Name
	if err := w.fits(s.Info); err != nil {
		return Strategy{}, fmt.Errorf("%s: %w", name, err)
	}
	refine := func(info Info) Info {
		info = w.Refine(info)
		info.Name = name
		if w.Doc != "" {
			info.Doc = w.Doc + "\n" + info.Doc
		}
		return info
	}
	return Strategy{
		Info:    refine(s.Info),
		options: s.options,
		refine:  func(_ Info, options any) Info { return refine(s.refine(s.Info, options)) },
		open: func(c Config, options any) (Locker, error) {
			locker, err := s.open(c, options)
			if err != nil {
				return nil, err
			}
			return w.Wrap(locker), nil
		},
	}, nil
}
