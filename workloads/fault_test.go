package workloads

import (
	"strings"
	"testing"
	"time"
)

func TestFaultsReadAndWriteThemselves(t *testing.T) {
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

// A default that cannot be read would make its fault unusable.
func TestEveryKindOfFaultHasItsDefaults(t *testing.T) {
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
			t.Errorf("%s as it comes: %v", kind.Name, err)
		}
	}
}

func TestFaultsAreHeldAgainstTheirWorkload(t *testing.T) {
	for name, test := range map[string]struct {
		fault  string
		change func(*Spec)
		want   string
	}{
		"too late": {
			"holder-crash:at=6s", nil,
			"--fault holder-crash: it would end 6s after the window opens",
		},
		"too long":        {"holder-pause:at=1s,for=4s", nil, "--fault holder-pause: it would end 5s after"},
		"no end to see":   {"partition:at=0s,for=5s", nil, "end 5s after"},
		"longer than all": {"latency:at=1ms,for=5s", nil, "end 5.001s after"},
		"twice the TTL": {
			"holder-pause:at=1s", func(w *Spec) { w.TTL = Duration(2 * time.Second) },
			"end 5s after",
		},
		"too often":        {"holder-pause:for=2s,every=1s", nil, "every 1s is too short: it lasts 2s"},
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
	f, _ := ParseFault("latency:at=0s,for=5s") // what only slows may last as long as the window
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
