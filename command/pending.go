package command

import (
	"slices"
	"strings"
	"sync"
)

// pendingOutputs are the outputs that are not written yet. If the user stops the command
// at once, it names them.
type pendingOutputs struct {
	mu   sync.Mutex
	owed []string
}

func (l *pendingOutputs) promise(written []file) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range written {
		l.owed = append(l.owed, f.where())
	}
}

func (l *pendingOutputs) done(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(l.owed, (file{path: path}).where()); at >= 0 {
		l.owed = slices.Delete(l.owed, at, at+1)
	}
}

// missing names the outputs that are not written; "" if there are none.
func (l *pendingOutputs) missing() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.owed) == 0 {
		return ""
	}
	return "; not written: " + strings.Join(l.owed, ", ")
}
