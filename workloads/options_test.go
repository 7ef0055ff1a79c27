package workloads

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestArgumentsRoundTrip parses the flags that Arguments returns for a list of workloads. The result must be the same
// workloads.
func TestArgumentsRoundTrip(t *testing.T) {
	t.Parallel()
	lines := map[string]string{
		"":                                "",
		"--clients 500 --hold 1ms":        "--clients 500 --hold 1ms",
		"--hold 1ms --clients 1,10,500":   "--clients 1,10,500 --hold 1ms",
		"--clients 4 --instances 2":       "--clients 4 --instances 2",
		"--instances 10 --keys 1":         "",
		"--keys 1,8 --key-dist zipf:0.99": "--keys 1,8 --key-dist zipf:0.99",
		"--hold uniform:1ms,5ms":          "--hold uniform:1ms,5ms",
		"--rate 300/s --arrivals constant --timeout 0 --pool 3": "" +
			"--rate 300/s --arrivals constant --timeout 0s --pool 3",
		"--stage 5s:10 --stage 20s:500 --seed 7":            "--clients 500 --seed 7 --stage 5s:10 --stage 20s:500",
		"--stage 5s:10/s --stage 20s:500/s":                 "--stage 5s:10/s --stage 20s:500/s",
		"--coalesce true --burst 100ms --work counter":      "--burst 100ms --work counter --coalesce",
		"--iterations 200 --warmup 0s --fence off --ttl 2s": "--iterations 200 --warmup 0s --ttl 2s --fence off",
		"--work counter --counter apart":                    "--work counter --counter apart",
		"--work counter --counter with-locks":               "--work counter",
		"--work transaction --release before-commit,after-commit --row version": "" +
			"--work transaction --release before-commit,after-commit --row version",
		"--work transaction --release after-commit --row plain": "--work transaction",
		"--duration 9s --think 1ms":                             "--duration 9s --think 1ms",
		"--fault holder-crash:at=1s --fault waiter-crash:n=5": "" +
			"--fault holder-crash:at=1s --fault waiter-crash:at=1s,n=5",
	}
	for _, field := range Fields() {
		if !strings.Contains(fmt.Sprint(lines), "--"+field.Name+" ") {
			t.Errorf("no case tries --%s", field.Name)
		}
	}
	for line, want := range lines {
		points := drafted(t, line)
		arguments := Arguments(points)
		if got := strings.Join(arguments, " "); got != want {
			t.Errorf("Arguments of %q are %q, want %q", line, got, want)
		}
		if diff := cmp.Diff(points, drafted(t, strings.Join(arguments, " ")),
			cmp.AllowUnexported(Dist{}, KeyDist{})); diff != "" {
			t.Errorf("%q is parsed to another workload (-want +got):\n%s", line, diff)
		}
	}
}

func drafted(t *testing.T, line string) []Point {
	t.Helper()
	var d Draft
	words := strings.Fields(line)
	for len(words) > 0 {
		name, value, rest := strings.TrimPrefix(words[0], "--"), "true", words[1:]
		if len(rest) > 0 && !strings.HasPrefix(rest[0], "--") {
			value, rest = rest[0], rest[1:]
		}
		if err := d.Give(name, value); err != nil {
			t.Fatalf("%s: %s: %v", line, name, err)
		}
		words = rest
	}
	points, err := d.Points()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(points)
}

// The test sets each option in turn. The text of Describe must change each time, so the test fails if Describe omits a
// new option.
func TestEveryOptionIsDescribed(t *testing.T) {
	unusual := map[string]string{
		"clients": "7", "duration": "7s", "iterations": "7", "warmup": "7s", "instances": "7", "keys": "7",
		"key-dist": "zipf:0.99", "hold": "7ms",
		"think": "7ms", "rate": "7/s", "arrivals": "constant", "stage": "7s:7", "burst": "7ms", "ttl": "7s",
		"timeout": "7s", "work": "spin", "fence": "off", "counter": "apart",
		"release": "before-commit", "row": "version",
		"coalesce": "true", "pool": "7",
	}
	// besides maps each option that has no effect on its own to the setting of another option that it needs.
	besides := map[string]string{
		"key-dist": "keys=7", "arrivals": "rate=7/s", "fence": "work=counter",
		"counter": "work=counter", "release": "work=transaction", "row": "work=transaction",
	}
	for _, f := range Fields() {
		if f.Name == "seed" || f.Name == "fault" { // the report shows these on separate lines
			continue
		}
		s := Default()
		for _, other := range Fields() {
			if name, value, _ := strings.Cut(besides[f.Name], "="); name == other.Name {
				give(t, &s, other, value)
			}
		}
		before := s.Describe()
		if unusual[f.Name] == "" {
			t.Fatalf("%s: name a value here that is not the usual one", f.Name)
		}
		give(t, &s, f, unusual[f.Name])
		if s.Describe() == before {
			t.Errorf("with %s %s it is described as without: %s", f.Name, unusual[f.Name], before)
		}
	}
}

func give(t *testing.T, s *Spec, f Field, text string) {
	t.Helper()
	values, err := f.values([]string{text})
	if err != nil {
		t.Fatal(err)
	}
	s.set(f, values...)
}
