package runner

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

// arms returns the options of all servers of a store that are to be compared.
func (p Plan) arms(name string) []store.Options {
	arms := []store.Options{p.Stores[name]}
	if name == store.Redis {
		arms = append(arms, p.Servers...)
	}
	return arms
}

// labels returns a label for each Redis server; a single server has none.
func (p Plan) labels() []string {
	if len(p.Servers) == 0 {
		return []string{""}
	}
	var labels []string
	for i, o := range p.arms(store.Redis) {
		label := results.ServerLabel + told(o)
		if slices.Contains(labels, label) {
			label += fmt.Sprintf("#%d", i+1)
		}
		labels = append(labels, label)
	}
	return labels
}

// told says in one word where a server is, without the user.
func told(o store.Options) string {
	if image, ok := strings.CutPrefix(o.Address, "image:"); ok {
		return image
	}
	if program, ok := strings.CutPrefix(o.Address, "process:"); ok {
		return filepath.Base(program)
	}
	var places []string
	for address := range strings.SplitSeq(o.Address, ",") {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			address = u.Host
		}
		places = append(places, address[strings.LastIndex(address, "@")+1:])
	}
	return strings.Join(places, ",")
}

// wrongArms returns the errors of a comparison of Redis servers.
func (p Plan) wrongArms() []error {
	if len(p.Servers) == 0 {
		return nil
	}
	var problems []error
	for _, v := range p.Strategies {
		if p.storeOf(v) != store.Redis {
			problems = append(problems, fmt.Errorf("--redis compares several servers, and %s does not lock in Redis", v.Name()))
		}
	}
	if p.Session != "" {
		problems = append(problems, errors.New("--session: generators meet on one server, and --redis names several"))
	}
	return problems
}
