package results

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/workloads"
)

// Conditions returns the conditions of the measurement as lines, each with its label. A line that does not apply has an
// empty text, such as the line on faults if the workload has none.
func (r *Report) Conditions() [][2]string {
	lines := [][2]string{{"workload", r.Workload.Describe()}}
	lines = append(lines, r.varied()...)
	if r.usesRedis() {
		lines = append(lines, [2]string{"redis", r.Redis.Describe()})
	}
	for _, s := range r.Stores {
		lines = append(lines, [2]string{s.Name, s.describe()})
	}
	if len(r.Generators) == 0 {
		lines = append(lines, [2]string{"machine", r.Environment.Describe()})
	}
	for _, part := range r.Generators { // one line for each generator
		lines = append(lines, [2]string{"machine", part.Generator + ": " + part.Environment.Describe()})
	}
	if r.Baselines != nil {
		lines = append(lines, [2]string{"baselines", r.Baselines.describe()})
	}
	return lines
}

// Gist is a short form of Conditions: the servers, the workload, the number of runs, the
// faults and the sweep.
func (r *Report) Gist() [][2]string {
	var about []string
	if r.usesRedis() {
		about = append(about, r.Redis.shortDescription("redis"))
	}
	for _, s := range r.Stores {
		about = append(about, s.Server.shortDescription(s.Name))
	}
	about = append(about, r.Workload.Describe(), words.Count(r.Rounds, "run")+" of each strategy")
	return append([][2]string{{"lockbench", words.Dotted(about...)}}, r.varied()...)
}

func (r *Report) usesRedis() bool { return len(r.Stores) == 0 || r.Redis.Source != "none" }

// varied returns two labelled lines: the faults of the workload, and the options that a sweep varies.
func (r *Report) varied() [][2]string {
	return [][2]string{{"faults", words.Dotted(r.Workload.Given()["fault"]...)}, {"sweep", sweep(r.Points)}}
}

// shortDescription returns, in a few words, the server's name, version and topology, and its address or the way in
// which lockbench started it.
func (s Redis) shortDescription(name string) string {
	if s.Source == "none" {
		return "no server"
	}
	at := s.Source
	if s.Source == "address" {
		at = s.Address
	}
	text := fmt.Sprint(cmp.Or(s.Name, name), " ", s.Version, " ", when(s.Topology != "single", s.Topology), " ",
		when(at != "", "("+at+")"))
	return strings.Join(strings.Fields(text), " ")
}

func when(applies bool, text string) string {
	if applies {
		return text
	}
	return ""
}

// sweep lists the options that a sweep varies, each with its values: "clients 10, 100 × keys 1, 4".
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

// Describe returns one line about the server and the way to reach it.
func (s Redis) Describe() string {
	address := s.Address
	if len(s.Nodes) > 1 {
		address = strings.Join(s.Nodes, " ")
	}
	return words.Dotted(strings.TrimSpace(s.Release()+" "+s.Mode), when(s.Topology != "single", s.Topology),
		when(s.Protocol > 0, fmt.Sprintf("RESP%d", s.Protocol)),
		when(s.IOThreads != nil && *s.IOThreads > 1, fmt.Sprintf("%d I/O threads", *cmp.Or(s.IOThreads, new(int)))),
		s.losing(), s.Source, s.Image, s.Network+when(s.Network == "host" || s.Network == "loopback", " network"),
		address, when(s.TLS, "TLS"), cpus("server on", s.AllowedCPUs))
}

// losing returns in a few words how much data a crash of the server may lose; "" if that is not known.
func (s Redis) losing() string {
	switch s.Durability {
	case "":
		return ""
	case "memory":
		return "a crash loses all"
	case "fsync":
		return "each write is synced"
	default:
		return "synced " + s.Durability
	}
}

// Describe returns one line about the machine and the Go runtime.
func (e Environment) Describe() string {
	return words.Dotted(
		strings.Trim(e.OS+"/"+e.Arch, "/"), e.Kernel,
		strings.TrimSuffix(fmt.Sprintf("%d × %s", e.CPUs, e.CPUModel), " × "),
		when(e.GoMaxProcs != e.CPUs, fmt.Sprintf("GOMAXPROCS %d", e.GoMaxProcs)), e.Go,
		when(e.TimerOvershoot > 0, "sleeps "+Nanoseconds.Format(float64(e.TimerOvershoot))+" too long"),
		cpus("generator on", e.AllowedCPUs),
	)
}

// describe returns one line about the store's server and the latency of its smallest request.
func (s Store) describe() string {
	request := ""
	if s.RequestP50 != nil {
		request = "request " + optional(s.RequestP50) + " / " + optional(s.RequestP99) + " (p50 / p99)"
	}
	return words.Dotted(s.Server.Describe(), request)
}

func (f *Baselines) describe() string {
	pair := func(p50, p99 *int64) string { return optional(p50) + " / " + optional(p99) }
	return words.Dotted(
		"PING "+pair(f.PingP50, f.PingP99), "EVALSHA "+pair(f.EvalP50, f.EvalP99)+" (p50 / p99)",
		"no lock "+Short(f.NoopPerSecond)+"/s", "in-process mutex "+Short(f.LocalPerSecond)+"/s",
	)
}

func optional(ns *int64) string {
	if ns == nil {
		return NotKnown
	}
	return Nanoseconds.Format(float64(*ns))
}

// cpus returns the text what, the word CPU and the CPU numbers, with ranges as Linux writes them: "server on CPU
// 0-3,8". For an empty list it returns "".
func cpus(what string, numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		first := i
		for i++; i < len(numbers) && numbers[i] == numbers[i-1]+1; {
			i++
		}
		part := fmt.Sprint(numbers[first])
		if i > first+1 {
			part += fmt.Sprintf("-%d", numbers[i-1])
		}
		parts = append(parts, part)
	}
	return when(len(parts) > 0, what+" CPU "+strings.Join(parts, ","))
}
