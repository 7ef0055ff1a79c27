package workloads

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Point is one workload of a sweep, with the label that identifies it in reports.
type Point struct {
	// Label lists the values that distinguish the point from the others: "clients=100 keys=4". It is empty if there is
	// only one point.
	Label    string `json:"label"`
	Workload Spec   `json:"workload"`
}

// Draft collects a workload's options by name, as flags, variables and files set them. The zero Draft is the default
// workload.
type Draft struct {
	given map[string][]value
	taken map[string]bool // options from a file; a flag overrides them without an error
}

type value struct {
	text   string
	parsed reflect.Value
}

// Give sets an option. The values replace those set before or, if the option is a list, are appended to them. Give
// leaves out values that cannot be parsed and returns an error that names them.
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

// Take copies one option from another draft, in which a file has set it. name is the name of the option.
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

// values parses the values of an option. Its error names each value that cannot be parsed, and each that a sweep lists
// twice.
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
		return nil, fmt.Errorf("only one value is allowed, not %d", len(values))
	}
	return values, errors.Join(problems...)
}

// DefaultInstances is the default number of application instances that share the clients. If there are fewer clients,
// each has its own instance.
const DefaultInstances = 10

// mostPoints is the largest number of points of a sweep. A larger sweep is an error.
const mostPoints = 1000

// Points returns the workloads of the draft: one for each combination of its options' values, in which the last option
// changes fastest. Points leaves validation to Spec.Validate, except for errors that depend on which options were set,
// such as a number of instances that is set and larger than the number of clients. A Spec does not show which options
// were set.
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
	_ = points[0].Workload.Arrivals.Load() // read once for all points of a sweep; Spec.Load reports the error
	var problems []error
	for i := range points {
		points[i].Workload.Arrivals = points[0].Workload.Arrivals
		problems = append(problems, d.follow(&points[i].Workload))
	}
	return points, errors.Join(problems...)
}

// set sets an option to a value; for a list it appends the values.
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

// follow derives options that are not set from those that are:
//
//   - from the clients: the number of instances
//   - from stages: the length of the window, and the largest number of clients (closed loop) or the first rate (open
//     loop)
//   - from a trace: the number of keys, the rate, and the length of a window in which the trace is played once
func (d Draft) follow(s *Spec) error {
	var problems []error
	if d.given["rate"] != nil && s.Rate == 0 && len(s.Stages) == 0 {
		problems = append(problems, errors.New("--rate must be above 0: leave it out for a closed loop"))
	}
	if s.Iterations > 0 && d.given["duration"] != nil && !d.taken["duration"] {
		problems = append(problems, fmt.Errorf("--duration %v has no effect with --iterations %d: leave one of them out",
			s.Duration, s.Iterations))
	}
	without := func(name string, isDefault bool) { // Validate reports the other values
		if s.Work != WorkTransaction && d.given[name] != nil && isDefault {
			problems = append(problems, fmt.Errorf(needsTransaction, name, s.Work))
		}
	}
	without("release", s.Release == ReleaseAfterCommit)
	without("row", s.Row == RowPlain)
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
			fmt.Errorf("--instances must be at most the number of clients, %d, not %d", s.Clients, s.Instances))
	}
	return errors.Join(problems...)
}
