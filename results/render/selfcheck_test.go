package render

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

func TestASelfcheckSaysWhatIsNotAsWanted(t *testing.T) {
	number := func(x float64) *float64 { return &x }
	s := &results.Selfcheck{
		Tool: results.Tool{Name: "lockbench", Version: "v1"}, Redis: results.Redis{Version: "7.0.15", Source: "process"},
		Environment: results.Environment{OS: "linux", Arch: "amd64", CPUs: 2, Go: "go1.26.0"},
		Checks: []results.Check{
			{Name: "queueing", Shows: "waits are explained", Verdict: results.Fail, Seconds: 61.4, Measured: []results.Measure{
				{Name: "utilisation", Value: number(50.04), Unit: results.Percent},
				{Name: "holds off", Value: number(-5), Unit: results.Percent, Wanted: "within 2 %", Verdict: results.Fail},
				{Name: "longest wait", Value: number(1.5e9), Unit: results.Nanoseconds, Wanted: "any", Verdict: results.Pass},
			}},
			{Name: "omission", Shows: "a stall shows", Verdict: results.Inconclusive, Why: []string{"the server is somebody else's"}, Measured: []results.Measure{
				{Name: "waits", Unit: results.Number, Wanted: "some", Verdict: results.Inconclusive},
			}},
		},
	}
	var table bytes.Buffer
	if err := WriteSelfcheckTable(&table, s, TableOptions{}); err != nil {
		t.Fatal(err)
	}
	want := `lockbench v1  linux/amd64, 2 CPUs, Go 1.26.0  Redis 7.0.15 (process)

queueing  FAIL  waits are explained (61 s)
  utilisation   50.0 %
  holds off     −5.00 %  within 2 %  FAIL
  longest wait  1.50 s   any

omission  inconclusive  a stall shows (0 s)
  ! the server is somebody else's
  waits  –  some  inconclusive
`
	if table.String() != want {
		t.Errorf("it reads\n%s\nwant\n%s", table.String(), want)
	}
	if got := s.With(results.Fail); !slices.Equal(got, []string{"queueing"}) {
		t.Errorf("failed: %v", got)
	}

	var text bytes.Buffer
	if err := results.WriteSelfcheckJSON(&text, s); err != nil {
		t.Fatal(err)
	}
	var back results.Selfcheck
	if err := json.Unmarshal(text.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if back.Schema != results.SelfcheckSchema || len(back.Checks) != 2 || *back.Checks[0].Measured[1].Value != -5 || !strings.Contains(text.String(), `"value": null`) {
		t.Errorf("in JSON it is\n%s", text.String())
	}
}
