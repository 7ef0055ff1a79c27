package workloads

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Point is one workload of a sweep.
type Point struct {
	// Label tells it from the others: "clients=100 keys=4". It is empty if there is only one
	// point.
	Label    string `json:"label"`
	Workload Spec   `json:"workload"`
}

// Draft is a workload that is being put together: options by name, as text, from flags,
// variables and files. The zero Draft is the default workload.
type Draft struct {
	given map[string][]string
}

// Give sets an option, in place of what was given before; a list's values are added. A value
// that cannot be read is left out, and the error names it.
func (d *Draft) Give(name string, texts ...string) error {
	fields := Fields()
	at := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if at < 0 {
		return fmt.Errorf("there is no option of this name")
	}
	field := fields[at]
	var values []string
	var problems []error
	for _, text := range texts {
		for _, value := range field.Values(text) {
			err := field.Check(value)
			if err == nil && field.Sweep && slices.Contains(values, value) {
				err = fmt.Errorf("%s is there twice", value)
			}
			if err != nil {
				problems = append(problems, err)
				continue
			}
			values = append(values, value)
		}
	}
	if len(values) > 1 && !field.Sweep && !field.List {
		return fmt.Errorf("it has one value, not %d", len(values))
	}
	if d.given == nil {
		d.given = map[string][]string{}
	}
	if field.List {
		values = append(d.given[name], values...)
	}
	if len(values) > 0 {
		d.given[name] = values
	}
	return errors.Join(problems...)
}

// DefaultInstances is how many application instances the clients spread over if none are
// given and there are enough clients.
const DefaultInstances = 10

// mostPoints is how many points a sweep may have.
const mostPoints = 1000

// Points returns the workloads of the draft: one, or one for each combination of its options'
// values; the last option changes first. Points does not validate them, except for instances
// without a client, which a Spec does not show.
func (d Draft) Points() ([]Point, error) {
	points := []Point{{Workload: Default()}}
	for _, field := range Fields() {
		values := d.given[field.Name]
		if !field.Sweep || len(values) < 2 {
			for i := range points {
				for _, value := range values {
					_ = field.set(&points[i].Workload, value) // Give has checked it
				}
			}
			continue
		}
		if len(points)*len(values) > mostPoints {
			return points[:1], fmt.Errorf("--%s makes a sweep of more than %d points", field.Name, mostPoints)
		}
		var crossed []Point
		for _, p := range points {
			for _, value := range values {
				next := p
				_ = field.set(&next.Workload, value)
				next.Label = strings.TrimSpace(p.Label + " " + field.Name + "=" + value)
				crossed = append(crossed, next)
			}
		}
		points = crossed
	}
	var problems []error
	for i := range points {
		w := &points[i].Workload
		w.follow(d.given)
		switch _, given := d.given["instances"]; {
		case !given:
			w.Instances = max(1, min(DefaultInstances, w.Clients))
		case w.Clients >= 1 && w.Instances > w.Clients:
			problems = append(problems, fmt.Errorf("--instances %d are more than the %d clients that would use them", w.Instances, w.Clients))
		}
	}
	return points, errors.Join(problems...)
}

// follow fills in what follows from the stages unless it is given: the window's length, and
// the largest number of clients or an open loop's first rate.
func (s *Spec) follow(given map[string][]string) {
	if len(s.Stages) == 0 {
		return
	}
	if given["duration"] == nil {
		s.Duration = s.Stages.Length()
	}
	if first := s.Stages[0]; first.Open && given["rate"] == nil {
		s.Rate = Rate(first.Target)
	} else if !first.Open && given["clients"] == nil {
		s.Clients = max(1, int(s.Stages.Most()))
	}
}
