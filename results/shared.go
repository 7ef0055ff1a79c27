package results

import "time"

// Shared says that other processes measured at the same time, on the same keys of
// the same servers: this report is one of several that belong together.
type Shared struct {
	Session   string   `json:"session"`
	Generator string   `json:"generator"`     // this one, of those of the session
	RedisRuns []string `json:"redis_run_ids"` // of each node, INFO's run_id; "" where it does not say
}

// PartOfASession is the label of a run that other generators took part in: what
// Redis counted is everybody's, the acquisitions are this generator's own.
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
