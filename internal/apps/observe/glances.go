package observe

// What scripts did to a lock before it was known what they do. A later execution of the same script shows it.

import "slices"

// glance is a look at the lock by a script of which it is not known yet what it does: it may be a try, whose client
// queues until another's script gives it the lock, or a release that comes too late.
type glance struct {
	script   *script
	args     []mark
	from     mark
	at       int64
	commands int64
	waits    bool // it asked for the end of the lease: that interests a client that will wait for it
}

const mostGlances = 64 // of a key

// glance remembers a look.
func (l *lock) glance(g glance) {
	if len(l.glances) == mostGlances {
		l.glances = slices.Delete(l.glances, 0, 1)
	}
	l.glances = append(l.glances, g)
}

// recall finds out which script queues: one that had the owner that is given the lock as an argument. Its looks were
// tries.
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

// releasedBefore handles the looks of scripts that are known to release by now: these were releases, too, and released
// nothing.
func (l *lock) releasedBefore() {
	l.glances = slices.DeleteFunc(l.glances, func(g glance) bool {
		if g.script.does == releases {
			l.idle(g.at, g.commands, g.args)
		}
		return g.script.does == releases
	})
}
