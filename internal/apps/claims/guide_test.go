package claims

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Each sentence of the guide has a figure, and says what measured it.
func TestTheGuideCitesWhatThereIs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/GUIDE.md")
	if err != nil {
		t.Fatal(err)
	}
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	cited := regexp.MustCompile(`\bclaims (\d+)`)
	figure := regexp.MustCompile(`\d`)
	sentences := 0
	for i, line := range strings.Split(string(text), "\n") {
		for _, number := range cited.FindAllStringSubmatch(line, -1) {
			n, _ := strconv.Atoi(number[1])
			if !slices.ContainsFunc(all, func(c Claim) bool { return c.Number == n }) {
				t.Errorf("docs/GUIDE.md:%d: there is no claim %d", i+1, n)
			}
		}
		said, is := strings.CutPrefix(line, "- ")
		if !is {
			continue
		}
		sentences++
		source := cited.FindString(said)
		if source == "" && !strings.Contains(said, "(advise") {
			t.Errorf("docs/GUIDE.md:%d: it does not say where it is from: %s", i+1, said)
		}
		if !figure.MatchString(cited.ReplaceAllString(said, "")) {
			t.Errorf("docs/GUIDE.md:%d: it has no figure: %s", i+1, said)
		}
	}
	if sentences < 10 {
		t.Errorf("docs/GUIDE.md has %d sentences", sentences)
	}
}
