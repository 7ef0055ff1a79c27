package strategies

import "fmt"

// Wrapper derives a strategy from a registered strategy. The derived strategy is named WRAPPER:NAME and takes NAME's
// options.
type Wrapper struct {
	Name    string // as on the command line, before the colon
	Summary string // one line that describes the change to NAME
	Claims  string // a text that lists which of NAME's guarantees remain
	Doc     string // the full description as in Info.Doc, printed before NAME's

	// Refine returns the Info of the derived strategy, or an error if the wrapper does not fit the given strategy. The
	// caller of Refine fills in the name.
	Refine func(Info) (Info, error)
	// Wrap returns a wrapper of one instance's Locker. Closing the wrapper closes this Locker.
	Wrap func(Locker) Locker
}

// RegisterWrapper registers a wrapper under its name. It panics if the name is taken or malformed.
func RegisterWrapper(w Wrapper) { register(&registry.wrappers, w.Name, w) }

// Wrappers returns the registered wrappers, ordered by name.
func Wrappers() []Wrapper { return ordered(&registry.wrappers) }

// around returns the strategy s behind the wrapper, under the name WRAPPER:NAME. It returns an error if Refine refuses
// s.
func (w Wrapper) around(s Strategy) (Strategy, error) {
	name := w.Name + ":" + s.Info.Name
	if _, err := w.Refine(s.Info); err != nil {
		return Strategy{}, fmt.Errorf("%s: %w", name, err)
	}
	refine := func(info Info) Info {
		info, _ = w.Refine(info) // the error, which does not depend on the options, was checked above
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
