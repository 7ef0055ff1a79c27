package results

import "time"

// Shared says that other processes measured at the same time, on the same keys of the same
// servers. Their reports belong together with this one.
type Shared struct {
	Session   string   `json:"session"`
	Generator string   `json:"generator"`     // this generator's name in the session
	RedisRuns []string `json:"redis_run_ids"` // INFO's run_id of each node; "" if not known
}

// PartOfASession is the label of a run with several generators: Redis's counts include all of
// them, the acquisitions are only this generator's.
const PartOfASession = "one of several generators"

// GeneratorPart is one generator of a merged report.
type GeneratorPart struct {
	Generator    string      `json:"generator"`
	Tool         Tool        `json:"tool"`
	Environment  Environment `json:"environment"`
	Baselines    *Baselines  `json:"floors,omitempty"`
	Seed         int64       `json:"seed"`
	Started      time.Time   `json:"started"`
	Finished     time.Time   `json:"finished"`
	Acquisitions int64       `json:"acquisitions"` // in the windows of all runs
}
