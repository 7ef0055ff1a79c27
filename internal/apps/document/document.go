// Package document defines what the documents of all applications have in common.
package document

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
)

// Head begins a document: which program made it, when, and on what.
type Head struct {
	Schema      string              `json:"schema"` // with its version
	Tool        results.Tool        `json:"tool"`
	Started     time.Time           `json:"started"`
	Finished    time.Time           `json:"finished"`
	Environment results.Environment `json:"environment"`
	Redis       results.Redis       `json:"redis"`
}

// Begin returns the head of a document that this program begins now.
func Begin(schema string) Head {
	return Head{
		Schema: schema, Tool: results.Tool{Name: "lockbench", Version: lockbench.Version()},
		Started: time.Now(),
	}
}

// Setup says in one line what was used for the measurement.
func (h Head) Setup() string {
	e := h.Environment
	return fmt.Sprintf("%s %s  %s/%s, %d CPUs, Go %s  Redis %s (%s)",
		h.Tool.Name, h.Tool.Version, e.OS, e.Arch, e.CPUs, strings.TrimPrefix(e.Go, "go"), h.Redis.Version,
		h.Redis.Source)
}

// Figure is a metric of a strategy over all rounds.
type Figure struct {
	Metric string          `json:"metric"`
	Unit   results.Unit    `json:"unit"`
	Value  *results.Figure `json:"value"` // nil if not known
}
