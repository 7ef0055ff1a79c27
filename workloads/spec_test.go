package workloads

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHoldBeyondTTLWarns(t *testing.T) {
	s := Default()
	if w := s.Warnings(); len(w) > 0 {
		t.Errorf("warned of %q", w)
	}
	s.Hold, s.TTL = Fixed(2*time.Second), Duration(time.Second)
	if w := s.Warnings(); len(w) != 1 || !strings.Contains(w[0], "--hold 2s is longer than --ttl 1s") {
		t.Errorf("warned of %q", w)
	}
}

func TestDistributionsRoundTrip(t *testing.T) {
	file := filepath.Join(t.TempDir(), "holds.txt")
	if err := os.WriteFile(file, []byte("# measured\n1ms\n\n3ms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for _, test := range []struct {
		text string
		mean time.Duration
	}{
		{"0s", 0},
		{"5ms", 5 * time.Millisecond},
		{"uniform:1ms,3ms", 2 * time.Millisecond},
		{"exp:2ms", 2 * time.Millisecond},
		{"lognormal:1ms,0.5", time.Duration(float64(time.Millisecond) * math.Exp(0.125))},
		{"file:" + file, 2 * time.Millisecond},
	} {
		var d Dist
		if err := errors.Join(d.UnmarshalText([]byte(test.text)), d.Load()); err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if d.String() != test.text || d.Mean() != test.mean {
			t.Errorf("%s reads as %v with mean %v, want %v", test.text, d, d.Mean(), test.mean)
		}
		const draws = 200_000
		var sum float64
		for range draws {
			sum += float64(d.Draw(random))
		}
		if off := math.Abs(sum/draws - float64(test.mean)); off > 0.02*float64(test.mean) {
			t.Errorf("%s: mean of the draws %v, want %v", test.text, time.Duration(sum/draws), test.mean)
		}
	}
}

// Each of these distributions must be rejected. command/testdata/badinputs.txt has the error messages.
func TestInvalidDistributions(t *testing.T) {
	for _, text := range []string{
		"5", "uniform:3ms,1ms", "file:", "uniform:3ms", "exp:", "lognormal:5ms", "lognormal:5ms,NaN", "gauss:5ms",
		"lognormal:5ms,-0.5", "uniform:1ms,2ms,3ms", "file:/no/such/file",
	} {
		var d Dist
		if err := errors.Join(d.UnmarshalText([]byte(text)), d.Load()); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestKeyDistributions(t *testing.T) {
	const draws, keys = 200_000, 10
	harmonic := 0.0
	for k := 1; k <= keys; k++ {
		harmonic += 1 / float64(k)
	}
	for _, test := range []struct {
		text  string
		share [2]float64 // of the first and of the last key
	}{
		{"uniform", [2]float64{0.1, 0.1}},
		{"zipf:1", [2]float64{1 / harmonic, 1 / harmonic / keys}},
		{"hotspot:0.8/2", [2]float64{0.4, 0.2 / 8}},
		{"hotspot:0.8/20", [2]float64{0.1, 0.1}},
	} {
		var d KeyDist
		if err := d.UnmarshalText([]byte(test.text)); err != nil {
			t.Fatal(err)
		}
		if d.String() != test.text {
			t.Errorf("%s reads as %v", test.text, d)
		}
		chooser, random := d.Over(keys), rand.New(rand.NewPCG(1, 1))
		var chosen [keys]float64
		for range draws {
			chosen[chooser.Choose(random)]++
		}
		for i, key := range []int{0, keys - 1} {
			if got := chosen[key] / draws; math.Abs(got-test.share[i]) > 0.05*test.share[i]+0.001 {
				t.Errorf("%s: key %d has a share of %.4f, want %.4f", test.text, key, got, test.share[i])
			}
		}
	}
	for _, text := range []string{
		"zipf", "zipf:0", "zipf:x", "hotspot:2/1", "hotspot:0.5", "hotspot:0.5/0",
		"uniform:1", "normal",
	} {
		if err := new(KeyDist).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]Rate{"2000/s": 2000, "600/m": 10, "3600/h": 1, "50": 50, "0.5/s": 0.5} {
		var r Rate
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
			t.Errorf("%s reads as %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "fast", "5/day", "-1/s", "NaN", "1e10/s"} {
		if err := new(Rate).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestSpecSurvivesJSON(t *testing.T) {
	s := Default()
	timeout := Duration(time.Second)
	s.Timeout, s.Rate, s.Hold = &timeout, 2000, Fixed(time.Millisecond)
	if err := s.KeyDist.UnmarshalText([]byte("zipf:0.99")); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back Spec
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, back); diff != "" {
		t.Error(diff)
	}
}

func FuzzDist(f *testing.F) {
	for _, text := range []string{
		"5ms", "uniform:1ms,5ms", "exp:5ms", "lognormal:5ms,0.8", "zipf:1", "hotspot:0.5/2",
		"10/s",
	} {
		f.Add(text)
	}
	random := rand.New(rand.NewPCG(1, 1))
	f.Fuzz(func(t *testing.T, text string) {
		var d Dist
		if !strings.HasPrefix(text, "file:") && d.UnmarshalText([]byte(text)) == nil && !d.negative() {
			var again Dist
			if err := again.UnmarshalText([]byte(d.String())); err != nil || again.String() != d.String() {
				t.Errorf("%q is written as %q and reads as %v, %v", text, d, again, err)
			}
			if d.Draw(random) < 0 {
				t.Errorf("%q draws a negative duration", text)
			}
		}
		var k KeyDist
		if k.UnmarshalText([]byte(text)) == nil {
			if key := k.Over(3).Choose(random); key < 0 || key > 2 {
				t.Errorf("%q chooses key %d of 3", text, key)
			}
		}
		_ = new(Rate).UnmarshalText([]byte(text))
	})
}

// A comma inside a distribution must not separate values of a sweep.
func TestSweepValuesAreSplitAtCommas(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"clients", "1, 10,100", "[1 10 100]"},
		{"rate", "100/s,1000/s", "[100/s 1000/s]"},
		{"work", "none,counter", "[none,counter]"},
		{"hold", "uniform:1ms,5ms", "[uniform:1ms,5ms]"},
		{"hold", "uniform:5ms,1ms", "[uniform:5ms,1ms]"},
		{"hold", "lognormal:5ms,99", "[lognormal:5ms,99]"},
		{"think", "1ms,uniform:1ms,5ms,exp:2ms", "[1ms uniform:1ms,5ms exp:2ms]"},
		{"think", "lognormal:5ms,0.8,uniform:1ms", "[lognormal:5ms,0.8 uniform:1ms]"},
		{"hold", "uniform:1ms,exp:5ms", "[uniform:1ms exp:5ms]"},
		{"hold", "1ms, 2ms", "[1ms 2ms]"},
	} {
		fields := Fields()
		field := fields[named(fields, test.name)]
		if got := fmt.Sprint(field.split(test.text)); got != test.want {
			t.Errorf("--%s %s: values %s, want %s", test.name, test.text, got, test.want)
		}
	}
}

func TestHottestKeyShare(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dist string
		keys int
		want float64
	}{
		{"uniform", 4, 0.25},
		{"uniform", 1, 1},
		{"zipf:1", 3, 1 / (1 + 1.0/2 + 1.0/3)},
		{"hotspot:0.8/2", 10, 0.4},
		{"hotspot:0.1/9", 10, 0.9},
		{"hotspot:0.8/2", 2, 0.5},
	} {
		var dist KeyDist
		if err := dist.UnmarshalText([]byte(test.dist)); err != nil {
			t.Fatal(err)
		}
		if got := dist.Hottest(test.keys); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s of %d keys: %v, want %v", test.dist, test.keys, got, test.want)
		}
	}
}

func TestStageRoundTrip(t *testing.T) {
	for _, text := range []string{"30s:500", "30s:0", "1m30s:2000/s", "500ms:0.5/s"} {
		var s Stage
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != text {
			t.Errorf("%s reads as %v: %v", text, s, err)
		}
	}
}

func TestInvalidStages(t *testing.T) {
	for _, text := range []string{"", "30s", "30s:", "x:5", "0s:5", "-1s:5", "1s:-5", "1s:5/x", "1s:-5/s", "1s:2.5"} {
		if err := new(Stage).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestStagesSetTheWindow(t *testing.T) {
	var d Draft
	if err := d.Give("stage", "1s:5,2s:50"); err != nil {
		t.Fatal(err)
	}
	if err := d.Give("stage", "1s:0"); err != nil {
		t.Fatal(err)
	}
	points, err := d.Points()
	if err != nil {
		t.Fatal(err)
	}
	w := points[0].Workload
	if err := w.Validate(); err != nil || w.Clients != 50 || time.Duration(w.Duration) != 4*time.Second {
		t.Errorf("%+v: %v", w, err)
	}
	w.Clients, w.Duration, w.Iterations, w.Rate = 10, 1, 5, 3
	err = w.Validate()
	for _, fault := range []string{
		"needs more than the 10 clients", "--duration is 1ns", "--iterations is not supported", "does not fit the loop",
	} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q is not among the errors:\n%v", fault, err)
		}
	}
}

func TestFaultsRoundTrip(t *testing.T) {
	for text, want := range map[string]string{
		"holder-crash":                   "holder-crash:at=1s",
		"holder-pause: for=3s , at=2s":   "holder-pause:at=2s,for=3s",
		"waiter-crash:n=5,every=1s,at=0": "waiter-crash:at=0s,every=1s,n=5",
		"waiter-crash:n=1,every=0s":      "waiter-crash:at=1s",
		"failover:promote=advanced":      "failover:at=1s,promote=advanced",
		"failover:promote=lagging":       "failover:at=1s",
	} {
		f, err := ParseFault(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := f.String(); got != want {
			t.Errorf("%s is written %s, want %s", text, got, want)
		}
		again, err := ParseFault(f.String())
		if err != nil || again != f {
			t.Errorf("%s is read again as %+v, %v", f, again, err)
		}
	}
}

// Every kind of fault must be valid with its default options.
func TestFaultDefaultsAreValid(t *testing.T) {
	for _, kind := range FaultKinds() {
		f, err := ParseFault(kind.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(kind.Options()) != len(strings.Fields("at every "+strings.ReplaceAll(kind.options, ",", " "))) {
			t.Errorf("%s has an option that does not exist: %v", kind.Name, kind.options)
		}
		w := Default()
		w.TTL = Duration(time.Second)
		w.Faults = []Fault{f}
		if err := w.Validate(); err != nil {
			t.Errorf("%s with its defaults: %v", kind.Name, err)
		}
	}
}

func TestFaultsAreCheckedAgainstWorkload(t *testing.T) {
	for name, test := range map[string]struct {
		fault  string
		change func(*Spec)
		want   string
	}{
		"too late": {
			"holder-crash:at=6s", nil,
			"--fault holder-crash: the fault would end 6s after the window opens",
		},
		"too long":        {"holder-pause:at=1s,for=4s", nil, "--fault holder-pause: the fault would end 5s after"},
		"no end to see":   {"partition:at=0s,for=5s", nil, "end 5s after"},
		"longer than all": {"latency:at=1ms,for=5s", nil, "end 5.001s after"},
		"twice the TTL": {
			"holder-pause:at=1s", func(w *Spec) { w.TTL = Duration(2 * time.Second) },
			"end 5s after",
		},
		"too often":        {"holder-pause:for=2s,every=1s", nil, "every 1s is too short: the fault lasts 2s"},
		"before the start": {"holder-crash:at=-1s", nil, "at must be at least 0s"},
		"nobody":           {"waiter-crash:n=0", nil, "n must be at least 1"},
		"everybody":        {"waiter-crash:n=1001", nil, "n must be at most 1000"},
		"a herd": {
			"waiter-crash", func(w *Spec) { w.Burst = Duration(time.Second) },
			"--fault is not supported with --burst",
		},
	} {
		f, err := ParseFault(test.fault)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		w := Default()
		w.TTL = Duration(time.Second)
		w.Faults = []Fault{f}
		if test.change != nil {
			test.change(&w)
		}
		if err := w.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	f, _ := ParseFault("latency:at=0s,for=5s") // a fault that only slows the locks may last as long as the window
	w := Default()
	w.Faults = []Fault{f}
	if err := w.Validate(); err != nil {
		t.Error(err)
	}
	f, _ = ParseFault("holder-pause:for=1s")
	w.TTL, w.Faults = Duration(30*time.Second), []Fault{f}
	if warnings := w.Warnings(); len(warnings) != 1 || !strings.Contains(warnings[0], "the lease outlives the pause") {
		t.Errorf("warnings %v", warnings)
	}
}
