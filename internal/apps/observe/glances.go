package observe

// This file keeps executions of scripts that only read a lock. Whether such a script tries or releases is not known
// until another execution of it shows more.

import "slices"

// glance is an execution of a script that only read the lock and whose purpose is not yet known. It may be a try, after
// which the client queues until the script of another client grants it the lock, or a late release.
type glance struct {
	script   *script
	args     []mark
	from     mark
	at       int64
	commands int64
	waits    bool // the script read the TTL, as a client does before it waits
}

const mostGlances = 64 // of a key

// glance stores a glance. If there are mostGlances, it drops the oldest.
func (l *lock) glance(g glance) {
	if len(l.glances) == mostGlances {
		l.glances = slices.Delete(l.glances, 0, 1)
	}
	l.glances = append(l.glances, g)
}

// recall is called when another client's script grants the lock to owner. A script that had owner as an argument and
// read the TTL was the try that queued it. recall counts the glances of that script as refused tries.
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

// releasedBefore counts the glances of scripts that are now known to release as releases that released nothing.
func (l *lock) releasedBefore() {
	l.glances = slices.DeleteFunc(l.glances, func(g glance) bool {
		if g.script.does == releases {
			l.idle(g.at, g.commands, g.args)
		}
		return g.script.does == releases
	})
}
