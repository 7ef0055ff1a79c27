package results

import (
	"os"
	"strings"
	"testing"
)

func TestEveryMetricIsDocumented(t *testing.T) {
	document, err := os.ReadFile("../docs/FORMATS.md")
	if err != nil {
		t.Fatal(err)
	}
	distributions, single := ThresholdMetrics()
	for _, name := range append(distributions, single...) {
		if !strings.Contains(string(document), "`"+name+"`") {
			t.Errorf("docs/FORMATS.md does not name %s", name)
		}
	}
}
