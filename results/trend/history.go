// Package trend keeps the history of a project's figures as JSON lines, and finds where they
// changed.
package trend

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lockbench/lockbench/results/compare"
)

// Schema is the version of a line.
const Schema = "lockbench/history/1"

// Entry is a line of a history: one strategy in one report.
type Entry struct {
	Schema     string             `json:"schema"`
	Time       time.Time          `json:"time"` // of the report's start
	Commit     string             `json:"commit"`
	Strategy   string             `json:"strategy"`
	Conditions string             `json:"conditions"` // hash of workload, machine and Redis; entries with the same one can be compared
	About      string             `json:"about"`      // the conditions for a reader
	Runs       int                `json:"runs"`
	Metrics    map[string]float64 `json:"metrics"` // medians, by the name of the metric

	Place string `json:"-"` // where it was read from: file:line
}

// Entries returns the lines that a report adds to a history. A strategy without a valid run
// adds none.
func Entries(r compare.Report, commit string) []Entry {
	var entries []Entry
	w := r.Workload
	about := fmt.Sprintf("%d clients, %d keys, hold %v · Redis %s %s · %d × %s", w.Clients, w.Keys, w.Hold, r.Redis.Release(), r.Redis.Source, r.Environment.CPUs, r.Environment.CPUModel)
	for _, name := range r.Names() {
		medians, runs := r.Medians(name)
		if runs == 0 {
			continue
		}
		entries = append(entries, Entry{
			Schema: Schema, Time: r.Started.UTC(), Commit: commit, Strategy: name,
			Conditions: r.Conditions(), About: about, Runs: runs, Metrics: medians,
		})
	}
	return entries
}

// Write writes one entry per line.
func Write(w io.Writer, entries []Entry) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for _, entry := range entries {
		if err := encoder.Encode(entry); err != nil {
			return fmt.Errorf("write history: %w", err)
		}
	}
	return nil
}

// Read reads what Write wrote. For every line that is no entry the error names the file and the
// line; the other entries are returned nevertheless.
func Read(r io.Reader, file string) ([]Entry, error) {
	var entries []Entry
	var problems []error
	lines := bufio.NewReader(r)
	for number := 1; ; number++ {
		line, err := lines.ReadString('\n')
		if text := strings.TrimSpace(line); text != "" {
			entry, problem := parse(text)
			if problem != nil {
				problems = append(problems, fmt.Errorf("%s:%d: %w", file, number, problem))
			} else {
				entry.Place = fmt.Sprintf("%s:%d", file, number)
				entries = append(entries, entry)
			}
		}
		if errors.Is(err, io.EOF) {
			return entries, errors.Join(problems...)
		}
		if err != nil {
			return entries, errors.Join(append(problems, fmt.Errorf("read %s: %w", file, err))...)
		}
	}
}

// Twice returns an error that names the entries of a report that occurs earlier: a report that
// counts twice makes a change look more certain. The start time identifies a report.
func Twice(entries []Entry) error {
	type identity struct {
		at                   int64
		strategy, conditions string
	}
	seen := map[identity]string{}
	said := map[[2]string]bool{} // one report has several entries
	var problems []error
	for _, e := range entries {
		id := identity{e.Time.UnixNano(), e.Strategy, e.Conditions}
		first, known := seen[id]
		if !known || e.Time.IsZero() {
			seen[id] = e.Place
			continue
		}
		if pair := [2]string{e.Place, first}; !said[pair] {
			said[pair] = true
			problems = append(problems, fmt.Errorf("%s is the same report as %s: a report counts once", e.Place, first))
		}
	}
	return errors.Join(problems...)
}

func parse(line string) (Entry, error) {
	var entry Entry
	if err := json.Unmarshal([]byte(line), &entry); err != nil {
		return entry, fmt.Errorf("not a line of a history: %w", err)
	}
	if entry.Schema != Schema {
		return entry, fmt.Errorf("its schema is %q, this lockbench reads %q", entry.Schema, Schema)
	}
	return entry, nil
}
