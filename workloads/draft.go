package workloads

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Point is one workload of a sweep.
type Point struct {
	// Label names the values that differ between points: "clients=100 keys=4". It is empty if there is only
	// one point.
	Label    string `json:"label"`
	Workload Spec   `json:"workload"`
}

// Draft is a workload that is being put together from flags, variables and files: the values of
// options by name. The zero Draft is the default workload.
type Draft struct {
	given map[string][]value
	taken map[string]bool // from a file, which another option overrides without a word
}

type value struct {
	text   string
	parsed reflect.Value
}

// Give sets an option, in place of what was given before; a list's values are added. A value
// that cannot be read is left out, and the error names it.
func (d *Draft) Give(name string, texts ...string) error {
	fields := Fields()
	at := named(fields, name)
	if at < 0 {
		return fmt.Errorf("there is no option of this name")
	}
	values, err := fields[at].values(texts)
	if fields[at].List {
		values = append(d.given[name], values...)
	}
	if d.given == nil {
		d.given = map[string][]value{}
	}
	if len(values) > 0 {
		d.given[name] = values
	}
	return err
}

// Take sets an option to what another draft has.
func (d *Draft) Take(from Draft, name string) {
	if d.given == nil {
		d.given = map[string][]value{}
	}
	d.given[name] = from.given[name]
	if d.taken == nil {
		d.taken = map[string]bool{}
	}
	d.taken[name] = true
}

// values parses the values of an option. The error names all that cannot be read.
func (f Field) values(texts []string) ([]value, error) {
	of := reflect.TypeFor[Spec]().Field(f.index).Type
	if f.List {
		of = of.Elem()
	}
	var values []value
	var problems []error
	for _, text := range texts {
		for _, part := range f.split(text) {
			parsed, err := parse(part, of)
			if f.Sweep && slices.ContainsFunc(values, func(v value) bool { return v.text == part }) {
				err = fmt.Errorf("%s is given twice", part)
			}
			if err != nil {
				problems = append(problems, err)
				continue
			}
			values = append(values, value{part, parsed})
		}
	}
	if len(values) > 1 && !f.Sweep && !f.List {
		return nil, fmt.Errorf("it has one value, not %d", len(values))
	}
	return values, errors.Join(problems...)
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
				points[i].Workload.set(field, values...)
			}
			continue
		}
		if len(points)*len(values) > mostPoints {
			return points[:1], fmt.Errorf("--%s makes a sweep of more than %d points", field.Name, mostPoints)
		}
		var crossed []Point
		for _, p := range points {
			for _, value := range values {
				next := Point{strings.TrimSpace(p.Label + " " + field.Name + "=" + value.text), p.Workload}
				next.Workload.set(field, value)
				crossed = append(crossed, next)
			}
		}
		points = crossed
	}
	_ = points[0].Workload.Arrivals.Load() // once for all of a sweep; Spec.Load reports its error
	var problems []error
	for i := range points {
		points[i].Workload.Arrivals = points[0].Workload.Arrivals
		problems = append(problems, d.follow(&points[i].Workload))
	}
	return points, errors.Join(problems...)
}

// set sets an option, or adds to a list.
func (s *Spec) set(f Field, values ...value) {
	at := reflect.ValueOf(s).Elem().Field(f.index)
	for _, v := range values {
		if f.List {
			at.Set(reflect.Append(at, v.parsed))
		} else {
			at.Set(v.parsed)
		}
	}
}

// follow fills in what follows from other options unless it is given: the number of instances, from stages the
// window's length and the largest number of clients or an open loop's first rate, and from a trace its keys, its rate,
// and the window, in which it is played once.
func (d Draft) follow(s *Spec) error {
	var problems []error
	if d.given["rate"] != nil && s.Rate == 0 && len(s.Stages) == 0 {
		problems = append(problems, errors.New("--rate must be above 0: leave it out for a closed loop"))
	}
	if s.Iterations > 0 && d.given["duration"] != nil && !d.taken["duration"] {
		problems = append(problems, fmt.Errorf("--duration %v has no effect with --iterations %d: leave one of them out",
			s.Duration, s.Iterations))
	}
	if len(s.Stages) > 0 {
		if d.given["duration"] == nil {
			s.Duration = s.Stages.Length()
		}
		if first := s.Stages[0]; first.Open && d.given["rate"] == nil {
			s.Rate = Rate(first.Target)
		} else if !first.Open && d.given["clients"] == nil {
			s.Clients = max(1, int(s.Stages.Most()))
		}
	}
	if t := s.Arrivals.Trace(); t != nil {
		if d.given["rate"] == nil {
			s.Rate = t.Rate().rounded()
		}
		if d.given["keys"] == nil {
			s.Keys = t.Keys
		}
		if d.given["duration"] == nil && s.Iterations == 0 && len(s.Stages) == 0 && s.Rate > 0 {
			played := min(float64(t.Length)*float64(t.Rate()/s.Rate), float64(LongestTrace))
			s.Duration = Duration(max(time.Millisecond, time.Duration(played).Round(time.Millisecond)))
		}
	}
	if d.given["instances"] == nil {
		s.Instances = max(1, min(DefaultInstances, s.Clients))
	} else if s.Clients >= 1 && s.Instances > s.Clients {
		problems = append(problems,
			fmt.Errorf("--instances %d are more than the %d clients that would use them", s.Instances, s.Clients))
	}
	return errors.Join(problems...)
}
