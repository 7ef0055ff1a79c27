package launch

import (
	"encoding/json"
	"os"
)

// owner identifies the lockbench process that started a server, so that another
// one can tell whether it still lives. A pid alone is used again by others; with
// the time it started it is unique on one boot of one host.
type owner struct {
	PID       int    `json:"pid"`
	Started   string `json:"started"` // as the system counts it; "" where it will not say
	Boot      string `json:"boot"`    // this boot of this host
	Namespace string `json:"namespace,omitempty"`
	Host      string `json:"host"`
	RunID     string `json:"run_id,omitempty"`
	// Programs are the names under which its server may run.
	Programs []string `json:"programs,omitempty"`
}

// thisProcess is ourselves as an owner.
func thisProcess(runID string) owner {
	host, _ := os.Hostname() // only compared; "" equals "" on one machine
	return owner{
		PID: os.Getpid(), Started: startTime(os.Getpid()), Boot: bootID(),
		Namespace: pidNamespace(), Host: host, RunID: runID,
	}
}

// dead says that the owner has certainly ended. An owner on another host or in
// another pid namespace cannot be seen from here and is left alone.
func (o owner) dead() bool {
	here := thisProcess("")
	switch {
	case o.PID == 0 || o.Host != here.Host:
		return false
	case o.Boot != here.Boot:
		return true
	case o.Namespace != here.Namespace:
		return false
	case !alive(o.PID):
		return true
	default:
		return o.Started != startTime(o.PID)
	}
}

// Note identifies this process and its run, for what is started elsewhere to carry, as
// JSON.
func Note(runID string) (string, error) {
	note, err := json.Marshal(thisProcess(runID))
	return string(note), err
}

// Orphaned says that the process of a Note has certainly ended.
func Orphaned(note string) bool {
	var who owner
	return json.Unmarshal([]byte(note), &who) == nil && who.dead()
}
