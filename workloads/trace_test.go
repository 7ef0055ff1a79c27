package workloads

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadTrace(t *testing.T) {
	t.Parallel()
	got, err := readTrace("seconds,key,hold\n# of a service\n0.5,order:7,5ms\n0.5,\"a,b\",\n1.5,order:7,0s\n")
	if err != nil {
		t.Fatal(err)
	}
	want := &Trace{
		Arrivals: []Arrival{
			{500 * time.Millisecond, 0, 5 * time.Millisecond}, {500 * time.Millisecond, 1, -1}, {1500 * time.Millisecond, 0, 0},
		},
		Length: 2 * time.Second, Keys: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if rate := got.Rate(); rate != 1.5 {
		t.Errorf("its rate is %v", rate)
	}
}

func TestInvalidTraces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                 "the first line must be seconds,key,hold",
		"time,key,hold\n1,a,\n2,a,":        "the first line must be",
		"seconds,key,hold\n1,a,\n":         "at least two arrivals",
		"seconds,key,hold\n0,a,\n0,b,\n":   "at different times",
		"seconds,key,hold\n1,a\n":          "line 2 must have three fields",
		"seconds,key,hold\n1,a,\n0.5,a,\n": "line 3 has an earlier time",
		"seconds,key,hold\n-1,a,\n":        "line 2: the time must be a number of seconds",
		"seconds,key,hold\nNaN,a,\n":       "line 2: the time must be a number of seconds",
		"seconds,key,hold\n1e99,a,\n":      "line 2: the time must be a number of seconds",
		"seconds,key,hold\n1,a,5\n":        "line 2: the hold must be a duration",
		"seconds,key,hold\n1,a,-5ms\n":     "line 2: the hold must be a duration",
		"seconds,key,hold\n1,\"a,\n":       "line 2 must have three fields",
	} {
		if _, err := readTrace(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A trace must set the keys, the rate and the window. The user's own settings must take precedence.
func TestTraceSetsKeysRateAndWindow(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(file, []byte(TraceHeader+"\n0,a,\n1,b,\n2,c,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		options, want string
	}{
		{"", "on 3 keys · file arrivals at 1/s · hold 0s · TTL 30s · 3s after 1s of warm-up"},
		{"rate=2/s keys=5 hold=1ms", "on 5 keys · file arrivals at 2/s · hold 1ms · TTL 30s · 1.5s after 1s of warm-up"},
		{"duration=1s", "on 3 keys · file arrivals at 1/s · hold 0s · TTL 30s · 1s after 1s of warm-up"},
		{"keys=2", "--keys must be at least 3 for --arrivals file, not 2"},
		{"stage=1s:10/s", "--stage is not supported with --arrivals file: the trace has its own load"},
	} {
		var d Draft
		for _, option := range append(strings.Fields(test.options), "arrivals=file:"+file) {
			name, value, _ := strings.Cut(option, "=")
			if err := d.Give(name, value); err != nil {
				t.Fatal(err)
			}
		}
		points, err := d.Points()
		got := ""
		if err == nil {
			err = points[0].Workload.Validate()
		}
		if err == nil {
			_, got, _ = strings.Cut(points[0].Workload.Describe(), "instances ")
		} else {
			got = err.Error()
		}
		if got = strings.ReplaceAll(got, "file:"+file, "file"); got != test.want {
			t.Errorf("%s: %s, want %s", test.options, got, test.want)
		}
	}
	var d Draft
	if err := d.Give("arrivals", "file:"+file+"x"); err != nil {
		t.Fatal(err)
	}
	points, err := d.Points()
	if err != nil {
		t.Fatal(err)
	}
	if err := points[0].Workload.Load(); err == nil || !strings.Contains(err.Error(), "--arrivals: open") {
		t.Errorf("a missing file: %v", err)
	}
}
