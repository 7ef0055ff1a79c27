package strategies

import (
	"cmp"
	"fmt"
	"slices"
)

// Mix returns a mixed strategy: half of the clients and instances use a, the other half use b, and all of them contend
// for the same keys. The mixed strategy claims the guarantees that both a and b claim. Mix returns an error if a and b
// cannot exclude each other.
func Mix(a, b Variant) (Variant, error) {
	x, y := a.Info(), b.Info()
	info := Info{
		Name:    a.Name() + "+" + b.Name(),
		Summary: fmt.Sprintf("half of the clients use %s, half %s", a.Name(), b.Name()),
		Claims:  x.Claims.and(y.Claims),

		Capacity: x.Capacity, Store: x.Store, Nodes: max(x.Nodes, y.Nodes), Format: x.format(),
		Since:     cmp.Or(x.Since, y.Since), // locks with the same format need the same version
		NoCluster: cmp.Or(x.NoCluster, y.NoCluster), OnlyCounter: x.OnlyCounter || y.OnlyCounter,
		Caveat: joined("; ", x.Caveat, y.Caveat), Assumes: joined(", and ", x.Assumes, y.Assumes),
		Keys: union(x.Keys, y.Keys), Persistent: union(x.Persistent, y.Persistent),
		Unwritten: x.Unwritten && y.Unwritten, Session: x.Session || y.Session,
		Rights: Rights{
			union(x.Rights.Keys, y.Rights.Keys), union(x.Rights.Channels, y.Rights.Channels),
			union(x.Rights.Commands, y.Rights.Commands), union(x.Rights.Cluster, y.Rights.Cluster),
			union(x.Rights.Newer, y.Rights.Newer),
		},
		Connections: Connections{
			max(x.Connections.PerInstance, y.Connections.PerInstance),
			max(x.Connections.PerWaiter, y.Connections.PerWaiter),
		},
		BlackBox: x.BlackBox || y.BlackBox, Driver: x.Driver || y.Driver,
		Counts: (x.Counts || !x.Driver) && (y.Counts || !y.Driver), Connects: connects(x, y),
	}
	why := ""
	switch {
	case x.format() != y.format() || x.Store != y.Store:
		why = fmt.Sprintf("the first part uses the keys and messages of %s, the second part those of %s",
			x.format(), y.format())
	case x.Capacity != y.Capacity:
		why = fmt.Sprintf("the first part allows %d holders at a time, the second %d", x.Capacity, y.Capacity)
	case x.MaxInstances > 0 || y.MaxInstances > 0:
		why = "the parts work across a limited number of application instances"
	case len(a.Parts)+len(b.Parts) > 0:
		why = "a mixed strategy has two parts"
	}
	if why != "" {
		return Variant{}, fmt.Errorf("strategy %s: the two parts do not share a lock: %s", info.Name, why)
	}
	return Variant{Strategy: Strategy{
		Info:   info,
		refine: func(info Info, _ any) Info { return info },
		open: func(Config, any) (Locker, error) {
			return nil, fmt.Errorf("strategy %s is a mix of two strategies: open one of its parts for each instance", info.Name)
		},
	}, Parts: []Variant{a, b}}, nil
}

// connects returns the ways to connect that the drivers of both strategies support. A strategy without a driver does
// not restrict them.
func connects(a, b Info) []string {
	switch {
	case !a.Driver:
		return b.Connects
	case !b.Driver:
		return a.Connects
	}
	return slices.DeleteFunc(slices.Clone(a.Connects), func(way string) bool { return !slices.Contains(b.Connects, way) })
}

// format returns the name of the format of the lock's keys and messages: Format or, by default, the strategy's name.
func (i Info) format() string { return cmp.Or(i.Format, i.Name) }

// and returns the guarantees that both c and d claim.
func (c Claims) and(d Claims) Claims {
	return Claims{
		c.Exclusion && d.Exclusion, c.Recovery && d.Recovery, c.FIFO && d.FIFO, c.Bounded && d.Bounded,
		c.Fencing && d.Fencing, c.Reentrant && d.Reentrant, c.Watchdog && d.Watchdog,
	}
}

// union returns the elements of both lists, sorted and without duplicates.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// joined joins the texts a and b with a separator between them. If one text is empty, it returns the other text. If
// both are equal, it returns the text once.
func joined(between, a, b string) string {
	if a == "" || b == "" || a == b {
		return cmp.Or(a, b)
	}
	return a + between + b
}

// Part returns the variant that an application instance uses. For a mixed strategy, this is one of the two parts,
// alternating by the instance's number. For any other variant, it is v itself.
func (v Variant) Part(instance int) Variant {
	if len(v.Parts) == 0 {
		return v
	}
	return v.Parts[instance%len(v.Parts)]
}

// Instances returns how many of n application instances the variant uses. This number is at most Info.MaxInstances.
// Each part of a mixed strategy uses the same number of instances.
func (v Variant) Instances(n int) int {
	if parts := len(v.Parts); parts > 0 {
		n = max(n/parts, 1) * parts
	}
	if most := v.Info().MaxInstances; most > 0 {
		n = min(n, most)
	}
	return n
}
