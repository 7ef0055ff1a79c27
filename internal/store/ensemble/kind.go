package ensemble

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Kind is a store of one server or one ensemble.
type Kind struct {
	Name, Title string // under which it is registered, and its official one
	A           string // the article before the title
	Most        int    // members of an ensemble that lockbench starts, an odd number; 1 means that there is none
	ToAll       bool   // an instance connects to every member, not to one of them
	NoPinning   bool
	// Refuses returns why this kind of store cannot have a fault, as text that follows its name; nil means none.
	Refuses func(workloads.Fault) error
}

// Validate joins the errors of options that all such stores have in common with others.
func (k Kind) Validate(o store.Options, others ...error) error {
	_, topology := k.Members(o.Topology)
	problems := append(others, topology)
	wrong := func(isWrong bool, format string, args ...any) {
		if isWrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	_, unknown := store.ParseDurability(string(o.Durability))
	wrong(unknown != nil, "--durability: %w", unknown)
	wrong(o.Address == "container" || o.Image != "", "%s is started as a process, not in a container", k.Title)
	wrong(o.Pin && k.NoPinning, "--pin is not supported by %s", k.Title)
	theirs := fmt.Sprintf("needs %s %s that lockbench starts itself: it does not", k.A, k.Title)
	wrong(!o.Started() && o.Durability != "", "--durability %s change the settings of yours", theirs)
	wrong(!o.Started() && o.Pin, "--pin %s move a server of yours to other CPUs", theirs)
	return errors.Join(problems...)
}

// Members parses a topology; "" gives 0, which means not specified.
func (k Kind) Members(topology string) (int, error) {
	switch topology {
	case "":
		return 0, nil
	case "single", k.Name:
		return 1, nil
	}
	forms := "single"
	for n := 1; n <= k.Most && k.Most > 1; n += 2 {
		form := fmt.Sprintf("%s:%d", k.Name, n)
		if form == topology {
			return n, nil
		}
		forms += " or " + form
	}
	return 0, fmt.Errorf("--topology %s: %s %s is %s", topology, k.A, k.Title, forms)
}

// Layout is what the options ask for; how many members a user's ensemble has is not known yet.
func (k Kind) Layout(o store.Options) Layout {
	n, _ := k.Members(o.Topology) // Validate reports the error
	if n == 0 && o.Started() {
		n = 1
	}
	return Layout{k, n, o.Started()}
}

// Layout is the number of members, with who started them; it is a store.Layout.
type Layout struct {
	Kind    Kind
	Members int  // 0 if not known
	Started bool // by lockbench
}

// Topology is the topology in the form of Kind.Members.
func (l Layout) Topology() string {
	if l.Members <= 1 {
		return "single"
	}
	return l.Kind.Name + ":" + strconv.Itoa(l.Members)
}

// Unfit says why a strategy cannot run there; "" if it can.
func (l Layout) Unfit(info strategies.Info) string {
	switch {
	case info.Nodes > 0 && info.Store != l.Kind.Name:
		return "it does not lock in " + l.Kind.Title
	case info.Nodes > 1:
		return fmt.Sprintf("it needs %d independent nodes, and the members of %s are one", info.Nodes, l.Kind.Title)
	}
	return ""
}

// Primaries is the number of servers that every instance connects to.
func (l Layout) Primaries() int {
	if l.Kind.ToAll {
		return max(l.Members, 1)
	}
	return 1
}

// Impossible returns an error for every fault that is not possible.
func (l Layout) Impossible(all []workloads.Fault) []error {
	var wrong []error
	for _, f := range all {
		if err := l.impossible(f); err != nil {
			wrong = append(wrong, fmt.Errorf("--fault %s %w", f.Name, err))
		}
	}
	return wrong
}

// impossible returns why a fault is not possible, as text that follows its name; nil if it is.
func (l Layout) impossible(f workloads.Fault) error {
	if l.Kind.Refuses != nil {
		if err := l.Kind.Refuses(f); err != nil {
			return err
		}
	}
	switch f.Name {
	case workloads.Kill, workloads.Pause, workloads.NodeDown, workloads.NodeHang:
	default:
		if f.Kind().Place == workloads.OnServers || f.Name == workloads.CrashBetween {
			return fmt.Errorf("is of Redis, and not of %s", l.Kind.Title)
		}
		return nil
	}
	switch last := f.Node + max(f.N, 1) - 1; {
	case !l.Started:
		return fmt.Errorf("needs a server of %s that lockbench starts itself", l.Kind.Title)
	case f.Kind().Topology != "" && l.Members == 1:
		return fmt.Errorf("needs several members: --topology %s:3", strings.ToLower(l.Kind.Title))
	case last >= l.Members:
		return fmt.Errorf("there is no member %d, of %d from 0 on", last, l.Members)
	case f.Name == workloads.Kill && f.Data == workloads.DataLose && l.Members > 1:
		return errors.New("cannot bring a member back without its data, which the others count on: data=keep")
	}
	return nil
}
