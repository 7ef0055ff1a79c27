package selfcheck

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/results"
)

func TestASelfcheckSaysWhatIsNotAsWanted(t *testing.T) {
	number := func(x float64) *float64 { return &x }
	s := &Document{
		Head: document.Head{
			Schema: schema, Tool: results.Tool{Name: "lockbench", Version: "v1"},
			Redis:       results.Redis{Version: "7.0.15", Source: "process"},
			Environment: results.Environment{OS: "linux", Arch: "amd64", CPUs: 2, Go: "go1.26.0"},
		},
		Checks: []Check{
			{Name: "queueing", Shows: "waits are explained", Verdict: Fail, Seconds: 61.4, Measured: []Measure{
				{Name: "utilisation", Value: number(50.04), Unit: results.Percent},
				{Name: "holds off", Value: number(-5), Unit: results.Percent, Wanted: "within 2 %", Verdict: Fail},
				{Name: "longest wait", Value: number(1.5e9), Unit: results.Nanoseconds, Wanted: "any", Verdict: Pass},
			}},
			{
				Name: "omission", Shows: "a stall shows", Verdict: Inconclusive, Why: []string{"no server of ours"},
				Measured: []Measure{{Name: "waits", Unit: results.Number, Wanted: "some", Verdict: Inconclusive}},
			},
		},
	}
	var table bytes.Buffer
	if err := document.WriteTable(&table, s, false); err != nil {
		t.Fatal(err)
	}
	want := `lockbench v1  linux/amd64, 2 CPUs, Go 1.26.0  Redis 7.0.15 (process)

queueing  FAIL  waits are explained (61 s)
  utilisation   50.0 %
  holds off     −5.00 %  within 2 %  FAIL
  longest wait  1.50 s   any

omission  inconclusive  a stall shows (0 s)
  ! no server of ours
  waits  –  some  inconclusive
`
	if table.String() != want {
		t.Errorf("it reads\n%s\nwant\n%s", table.String(), want)
	}
	if got := s.With(Fail); !slices.Equal(got, []string{"queueing"}) {
		t.Errorf("failed: %v", got)
	}
	var text bytes.Buffer
	if err := document.WriteJSON(&text, s, false); err != nil || !strings.Contains(text.String(), `"value": null`) {
		t.Errorf("in JSON it is\n%s, %v", text.String(), err)
	}
}

func TestVerdicts(t *testing.T) {
	for name, test := range map[string]struct {
		note func(*Check)
		want Verdict
	}{
		"nothing measured": {func(*Check) {}, Inconclusive},
		"as wanted":        {func(c *Check) { c.want(true, "x", 1, "", "1") }, Pass},
		"not as wanted":    {func(c *Check) { c.want(true, "x", 1, "", "1"); c.want(false, "y", 2, "", "1") }, Fail},
		"not to be had":    {func(c *Check) { c.want(false, "x", math.NaN(), "", "1") }, Inconclusive},
		"not carried out":  {func(c *Check) { c.want(true, "x", 1, "", "1"); c.unsure("no Redis") }, Inconclusive},
		"fault and trouble": {func(c *Check) {
			c.unsure("restless")
			c.want(false, "x", 1, "", "2")
			c.want(false, "y", math.NaN(), "", "2")
		}, Fail},
	} {
		var c Check
		test.note(&c)
		if c.conclude(); c.Verdict != test.want {
			t.Errorf("%s: %s, want %s", name, c.Verdict, test.want)
		}
	}
}

func TestOverlapsAreThoseOfTheInstants(t *testing.T) {
	found := overlaps([]engine.Acquisition{
		{Granted: 100, Released: 200},
		{Granted: 0, Released: 100},   // touches the first
		{Granted: 190, Released: 300}, // 10 with it
		{Granted: 400, Released: 900},
		{Granted: 500, Released: 600}, // inside
	})
	if len(found) != 2 || found[0] != 10 || found[1] != 100 {
		t.Errorf("found %v", found)
	}
}
