package observe

// The looks of scripts at a lock whose meaning is not yet known. A later execution of the same script shows the
// meaning.

import "slices"

// glance is a look at the lock by a script whose purpose is not yet known. It may be a try, whose client queues until
// the script of another client hands it the lock, or a release that comes too late.
type glance struct {
	script   *script
	args     []mark
	from     mark
	at       int64
	commands int64
	waits    bool // it read the TTL, as a client does that will wait
}

const mostGlances = 64 // of a key

// glance remembers a look.
func (l *lock) glance(g glance) {
	if len(l.glances) == mostGlances {
		l.glances = slices.Delete(l.glances, 0, 1)
	}
	l.glances = append(l.glances, g)
}

// recall finds the script that queued the owner which now gets the lock: it had this owner as an argument. The looks of
// that script were tries.
func (l *lock) recall(owner mark) {
	for _, g := range l.glances {
		if at := slices.Index(g.args, owner); at >= 0 && g.waits && g.script.does == nothing {
			g.script.does, g.script.owner = tries, at
		}
	}
	l.glances = slices.DeleteFunc(l.glances, func(g glance) bool {
		tried := g.waits && g.script.does == tries && g.script.owner < len(g.args)
		if tried {
			l.refuse(try{owner: g.args[g.script.owner], from: g.from, at: g.at}, true)
		}
		return tried
	})
}

// releasedBefore counts the earlier looks of a script that turns out to release: they were releases that released
// nothing.
func (l *lock) releasedBefore() {
	l.glances = slices.DeleteFunc(l.glances, func(g glance) bool {
		if g.script.does == releases {
			l.idle(g.at, g.commands, g.args)
		}
		return g.script.does == releases
	})
}
