package strategies

import "fmt"

// Wrapper makes another strategy of a registered one. It is named WRAPPER:NAME and takes
// NAME's options.
type Wrapper struct {
	Name    string // as on the command line, before the colon
	Summary string // one line: what it does to NAME
	Claims  string // in words: what is left of NAME's guarantees
	Doc     string // all there is to know, put before NAME's; as Info.Doc

	// Refine returns what the wrapped strategy says of itself, or why a strategy cannot be
	// wrapped. The name is filled in afterwards.
	Refine func(Info) (Info, error)
	// Wrap puts the wrapper around one instance's Locker, which it closes.
	Wrap func(Locker) Locker
}

// RegisterWrapper makes a wrapper known by its name. It panics on a name that is taken or
// malformed.
func RegisterWrapper(w Wrapper) { register(&registry.wrappers, w.Name, w) }

// Wrappers returns the registered wrappers, ordered by name.
func Wrappers() []Wrapper { return ordered(&registry.wrappers) }

// around returns the wrapped strategy.
func (w Wrapper) around(s Strategy) (Strategy, error) {
	name := w.Name + ":" + s.Info.Name
	if _, err := w.Refine(s.Info); err != nil {
		return Strategy{}, fmt.Errorf("%s: %w", name, err)
	}
	refine := func(info Info) Info {
		info, _ = w.Refine(info) // a strategy's options do not change whether it fits
		info.Name = name
		info.Doc = w.Doc + "\n" + info.Doc
		return info
	}
	return Strategy{
		Info:     refine(s.Info),
		defaults: s.defaults,
		refine:   func(_ Info, options any) Info { return refine(s.refine(s.Info, options)) },
		open: func(c Config, options any) (Locker, error) {
			locker, err := s.open(c, options)
			if err != nil {
				return nil, err
			}
			return w.Wrap(locker), nil
		},
	}, nil
}
