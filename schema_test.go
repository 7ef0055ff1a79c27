package lockbench_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
)

func TestMeasuredReportMatchesSchema(t *testing.T) {
	server := redistest.Start(t)
	report, err := lockbench.Run(t.Context(),
		plan(t, server.URL(), "spin,redsync,local", func(p *lockbench.Plan) { p.Baselines = true }))
	if err != nil {
		t.Fatal(err)
	}
	var document bytes.Buffer
	if err := results.WriteJSON(&document, report); err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile("results/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(document.String()))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Error(err)
	}

	read, err := results.ReadJSON(&document)
	if err != nil {
		t.Fatal(err)
	}
	for i, run := range read.Runs {
		for name, d := range map[string]results.Distribution{
			"wait": run.Waiting.PerAcquisition, "wait per client": run.Waiting.PerClient, "release": run.Speed.Release,
		} {
			if diff := cmp.Diff(d.P99, d.Survival().Quantile(0.99)); diff != "" {
				t.Errorf("%s, p99 of %s (-measured +read):\n%s", run.Strategy, name, diff)
			}
		}
		if turns := run.Fairness.PerClient; turns.TotalCount() != int64(report.Workload.Clients) {
			t.Errorf("%s: the turns of %v clients", report.Runs[i].Strategy, turns)
		}
	}
}
