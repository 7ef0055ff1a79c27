package launch

import (
	"encoding/json"
	"os"
)

// owner identifies the lockbench process that started a server, so that another process can check
// whether it is alive. The system reuses pids; with the start time, a pid is unique on one
// boot of one host.
type owner struct {
	PID       int    `json:"pid"`
	Started   string `json:"started"` // in the system's form; "" if not known
	Boot      string `json:"boot"`    // ID of this boot of this host
	Namespace string `json:"namespace,omitempty"`
	Host      string `json:"host"`
	RunID     string `json:"run_id,omitempty"`
	// Server is the pid of its server's process, Since its start time, and Programs are the names that
	// it may have.
	Server   int      `json:"server,omitempty"`
	Since    string   `json:"since,omitempty"`
	Programs []string `json:"programs,omitempty"`
}

// thisProcess returns the owner for this process.
func thisProcess(runID string) owner {
	host, _ := os.Hostname() // only compared; "" equals "" on one machine
	return owner{
		PID: os.Getpid(), Started: startTime(os.Getpid()), Boot: bootID(),
		Namespace: pidNamespace(), Host: host, RunID: runID,
	}
}

// dead says that the owner has certainly ended. An owner on another host or in another pid
// namespace cannot be seen from here and counts as alive.
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

// Note identifies this process and its run as JSON, to be attached to what is started elsewhere.
func Note(runID string) (string, error) {
	note, err := json.Marshal(thisProcess(runID))
	return string(note), err
}

// Orphaned says that the process in a Note has certainly ended.
func Orphaned(note string) bool {
	var who owner
	return json.Unmarshal([]byte(note), &who) == nil && who.dead()
}
