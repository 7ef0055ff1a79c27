package session

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store/redis/barrier"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// recorded returns generator 0 of a session of three, and its record, which contains the two runs of the plan.
func recorded(t *testing.T) (*together, []byte) {
	t.Helper()
	runs := []results.Run{}
	for round := range 2 {
		run := results.Run{Strategy: "spin", Round: round + 1, Started: time.Unix(1e9, 0), WindowNS: 1e9}
		run.Speed.Acquisitions = 5
		runs = append(runs, run)
	}
	g := &together{
		Member: new(barrier.Member), records: make([][][]byte, 3),
		report: &results.Report{
			Schema: results.Schema, Rounds: 2, Workload: workloads.Spec{Clients: 1, Keys: 1}, Shared: &results.Shared{},
			Runs:       runs,
			Strategies: []results.Strategy{{Name: "spin", Instances: 1}},
		},
		planned: map[string]bool{"spin": true},
	}
	mine, err := g.encode()
	if err != nil {
		t.Fatal(err)
	}
	return g, mine
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var record bytes.Buffer
	w := gzip.NewWriter(&record)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return record.Bytes()
}

// Each case forges or damages the record of one generator. That generator must be reported as missing, and its record
// must not cost more memory than a genuine one. The records of the other generators must be kept.
func TestForgedRecords(t *testing.T) {
	t.Parallel()
	_, genuine := recorded(t)
	head := `{"schema": "` + results.Schema + `", "shared": {}, "runs": [`
	for name, c := range map[string]struct {
		record []byte
		want   string
	}{
		"no archive":   {[]byte("hello"), "unpack: unexpected EOF"},
		"cut off":      {genuine[:len(genuine)-9], "unpack: unexpected EOF"},
		"no JSON":      {packed(t, "hello"), "not a complete lockbench report"},
		"no session":   {packed(t, `{"schema": "`+results.Schema+`"}`), "the record is not part of a session"},
		"too long":     {packed(t, head+strings.Repeat(" ", mostRecordText)+"]}"), "the record has more than 33554432 bytes"},
		"many runs":    {packed(t, head+strings.Repeat("{},", 100_000)+"{}]}"), "record has 200"},
		"another run":  {packed(t, head+`{"strategy": "sp\u001bin", "round": 1}]}`), "which is not in the plan"},
		"a far round":  {packed(t, head+`{"strategy": "spin", "round": 3}]}`), "a run of spin in round 3"},
		"many at once": {packed(t, head+`{"record": {"counted": [`+strings.Repeat("1,", 100_000)+"1]}}]}"), "record has 100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, mine := recorded(t)
			g.take([][]byte{c.record, c.record, genuine}, mine)
			sum, err := g.merge()
			if err != nil {
				t.Fatal(err)
			}
			if want := "generator 1 handed in a damaged record: "; !strings.HasPrefix(sum.Error, want) ||
				!strings.Contains(sum.Error, c.want) || strings.Contains(sum.Error, "\x1b") {
				t.Errorf("%q, want %s … %s", sum.Error, want, c.want)
			}
			if len(sum.Runs) != 2 || len(sum.Generators) != 2 {
				t.Fatalf("%d runs of %d generators", len(sum.Runs), len(sum.Generators))
			}
			for _, run := range sum.Runs {
				if run.Speed.Acquisitions != 10 || len(run.Invalid) == 0 || run.Invalid[0].Text != sum.Error {
					t.Errorf("%d acquisitions, invalid %q", run.Speed.Acquisitions, run.Invalid)
				}
			}
		})
	}
}
