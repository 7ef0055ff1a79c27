package observe

// This file stores executions of scripts that only read a lock. Such a script may acquire or release a lock. This is
// not known until another execution of the script shows its purpose.

import "slices"

// pendingRead is an execution of a script that only read the lock and whose purpose is not yet known. The execution may
// be a late release. It may also be a try, after which the client queues until another client's script grants it the
// lock.
type pendingRead struct {
	script   *script
	args     []mark
	from     mark
	at       int64
	commands int64
	waits    bool // the script read the TTL, as a client does before it waits
}

const maxPendingReads = 64 // of a key

// addPendingRead stores a pending read. If there are already maxPendingReads, it drops the oldest read.
func (l *lock) addPendingRead(g pendingRead) {
	if len(l.pendingReads) == maxPendingReads {
		l.pendingReads = slices.Delete(l.pendingReads, 0, 1)
	}
	l.pendingReads = append(l.pendingReads, g)
}

// recall is called when another client's script grants the lock to owner. If a pending read had owner as an argument
// and read the TTL, it was the try by which owner joined the queue. recall counts such reads of the same script as
// refused tries.
func (l *lock) recall(owner mark) {
	for _, g := range l.pendingReads {
		if at := slices.Index(g.args, owner); at >= 0 && g.waits && g.script.does == nothing {
			g.script.does, g.script.owner = tries, at
		}
	}
	l.pendingReads = slices.DeleteFunc(l.pendingReads, func(g pendingRead) bool {
		tried := g.waits && g.script.does == tries && g.script.owner < len(g.args)
		if tried {
			l.refuse(try{owner: g.args[g.script.owner], from: g.from, at: g.at}, true)
		}
		return tried
	})
}

// releasedBefore counts the pending reads of scripts that are now known to release. Each of these reads counts as a
// release that released nothing.
func (l *lock) releasedBefore() {
	l.pendingReads = slices.DeleteFunc(l.pendingReads, func(g pendingRead) bool {
		if g.script.does == releases {
			l.idle(g.at, g.commands, g.args)
		}
		return g.script.does == releases
	})
}
