package results

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/workloads"
)

// labelWidth is the room for a heading's or a note's first word.
const labelWidth = 11

// entry writes a line that starts with a word to find it by, wrapped below
// itself; nothing when there is nothing to say. A word that begins with "!" stands out.
func (p *page) entry(label, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if text == "" {
		return
	}
	if p.list {
		p.item(label, text)
		return
	}
	lines := wrap(text, tableWidth-labelWidth, "")
	for i, line := range lines {
		word := strings.Repeat(" ", labelWidth)
		if i == 0 {
			word = fmt.Sprintf("%-*s", labelWidth, label)
		}
		if strings.HasPrefix(word, "!") {
			word = p.paint.red(word)
		}
		fmt.Fprintf(p, "%s%s\n", word, line)
	}
}

// heading says what was measured, on what, and what that could do at best.
func (p *page) heading(r *Report) {
	p.entry("lockbench", "%s", join(r.Tool.Version, plural(r.Rounds, "run")+" of each strategy", seed(r), started(r)))
	p.entry("workload", "%s", workload(r))
	p.entry("faults", "%s", join(r.Workload.Given()["fault"]...))
	p.entry("sweep", "%s", sweep(r.Points))
	p.entry("redis", "%s", server(r.Redis))
	p.machines(r)
	p.entry("placement", "%s", placement(r))
	if r.Floors != nil {
		p.entry("floors", "%s", floors(r.Floors))
	}
}

// machines are the generators', each with its name where there are several.
func (p *page) machines(r *Report) {
	if len(r.Parts) == 0 {
		p.entry("machine", "%s", machine(r.Environment))
	}
	for _, part := range r.Parts {
		p.entry("machine", "%s: %s", part.Generator, machine(part.Environment))
	}
}

// seed is what repeats what was drawn; generators have one each.
func seed(r *Report) string {
	if len(r.Parts) > 0 || r.Workload.Seed == 0 {
		return ""
	}
	return fmt.Sprintf("seed %d", r.Workload.Seed)
}

func started(r *Report) string {
	if r.Started.IsZero() {
		return ""
	}
	return r.Started.UTC().Format("2006-01-02 15:04 MST")
}

func workload(r *Report) string {
	w := r.Workload
	window := fmt.Sprintf("%v after %v of warm-up", w.Duration, w.Warmup)
	if w.Iterations > 0 {
		window = fmt.Sprintf("%d acquisitions after %v of warm-up", w.Iterations, w.Warmup)
	}
	wait := ""
	if w.Timeout != nil {
		wait = fmt.Sprintf("timeout %v", *w.Timeout)
	}
	think := ""
	if !w.Think.IsZero() {
		think = fmt.Sprintf("think %v", w.Think)
	}
	work, coalesced := "", ""
	if w.Work == workloads.WorkSpin || w.Work == workloads.WorkCounter {
		work = "work " + string(w.Work)
	}
	if w.Coalesce {
		coalesced = "coalesced"
	}
	keys := plural(w.Keys, "key")
	if chosen := w.KeyDist.String(); w.Keys > 1 && chosen != "uniform" {
		keys += " (" + chosen + ")"
	}
	rate := ""
	if w.Gather > 0 {
		rate = fmt.Sprintf("all gather for %v behind one holder", w.Gather)
	}
	for _, stage := range w.Stages {
		rate = join(rate, "stage "+stage.String())
	}
	if w.Rate > 0 {
		rate = join(fmt.Sprintf("%s arrivals at %v", w.Arrivals, w.Rate), rate)
	}
	return join(
		fmt.Sprintf("%s in %s on %s", plural(w.Clients, "client"), plural(w.Instances, "instance"), keys),
		rate, fmt.Sprintf("hold %v", w.Hold), think, work, coalesced, fmt.Sprintf("TTL %v", w.TTL), wait, window,
	)
}

// sweep names the options that a sweep changes, with their values.
func sweep(points []workloads.Point) string {
	var names []string
	values := map[string][]string{}
	for _, point := range points {
		for part := range strings.FieldsSeq(point.Label) {
			name, value, _ := strings.Cut(part, "=")
			if values[name] == nil {
				names = append(names, name)
			}
			if !slices.Contains(values[name], value) {
				values[name] = append(values[name], value)
			}
		}
	}
	for i, name := range names {
		names[i] = name + " " + strings.Join(values[name], ", ")
	}
	return strings.Join(names, " × ")
}

func server(s Redis) string {
	security := ""
	if s.TLS {
		security = "TLS"
	}
	topology := s.Topology
	if topology == "single" {
		topology = ""
	}
	address := s.Address
	if len(s.Nodes) > 1 {
		address = strings.Join(s.Nodes, " ")
	}
	network := s.Network
	if network == "host" || network == "loopback" {
		network += " network"
	}
	protocol, threads := "", ""
	if s.Protocol > 0 {
		protocol = fmt.Sprintf("RESP%d", s.Protocol)
	}
	if s.IOThreads != nil && *s.IOThreads > 1 {
		threads = fmt.Sprintf("%d I/O threads", *s.IOThreads)
	}
	return join(strings.TrimSpace(s.Release()+" "+s.Mode), topology, protocol, threads, s.Source, s.Image, network, address, security, cpus("server", s.PinnedCPUs))
}

func machine(e Environment) string {
	timer := ""
	if e.TimerOvershoot > 0 {
		timer = "sleeps " + nanoseconds(float64(e.TimerOvershoot)) + " too long"
	}
	procs := ""
	if e.GoMaxProcs != e.CPUs {
		procs = fmt.Sprintf("GOMAXPROCS %d", e.GoMaxProcs)
	}
	return join(
		strings.Trim(e.OS+"/"+e.Arch, "/"), e.Kernel,
		strings.TrimSuffix(fmt.Sprintf("%d × %s", e.CPUs, e.CPUModel), " × "),
		procs, e.Go, timer, cpus("generator", e.PinnedCPUs),
	)
}

func cpus(who string, pinned []int) string {
	if len(pinned) == 0 {
		return ""
	}
	return fmt.Sprintf("%s pinned to CPU %s", who, strings.Trim(fmt.Sprint(pinned), "[]"))
}

func floors(f *Floors) string {
	pair := func(p50, p99 *int64) string { return optional(p50) + " / " + optional(p99) }
	return join(
		"PING "+pair(f.PingP50, f.PingP99), "EVALSHA "+pair(f.EvalP50, f.EvalP99)+" (p50 / p99)",
		"no lock "+number(f.NoopPerSecond)+"/s", "in-process mutex "+number(f.LocalPerSecond)+"/s",
	)
}

func optional(ns *int64) string {
	if ns == nil {
		return unknown
	}
	return nanoseconds(float64(*ns))
}

// join puts a dot between what is not empty.
func join(parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part != "" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, " · ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
