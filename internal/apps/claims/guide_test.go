package claims

import (
	"math"
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

var number = regexp.MustCompile(`\d+(?:\.\d+)?`)

// numbers are those in a text.
func numbers(text string) []float64 {
	var all []float64
	for _, digits := range number.FindAllString(strings.ReplaceAll(text, ",", ""), -1) {
		x, _ := strconv.ParseFloat(digits, 64) // it is one
		all = append(all, x)
	}
	return all
}

// published are the figures that the page of claims has of each.
func published(t *testing.T) map[int][]float64 {
	t.Helper()
	text, err := os.ReadFile("../../../docs/evidence/CLAIMS.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[int][]float64{}
	claim := 0
	for line := range strings.Lines(string(text)) {
		if heading, is := strings.CutPrefix(line, "## "); is {
			before, _, _ := strings.Cut(heading, ".")
			claim, _ = strconv.Atoi(before)
		}
		if cells := strings.Split(line, " | "); claim > 0 && len(cells) > 3 {
			all[claim] = append(all[claim], numbers(cells[0]+cells[1])...)
		}
	}
	return all
}

// The figures of a sentence of the guide are those that the page of claims has of the claims that
// it cites, rounded to two digits: one at least, and each with a decimal point. What follows
// "another run" or "earlier runs" is from elsewhere.
func TestTheGuidesFiguresAreThoseOfTheClaims(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/GUIDE.md")
	if err != nil {
		t.Fatal(err)
	}
	cited := regexp.MustCompile(`\bclaims (\d+)`)
	all := published(t)
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "- ") && !strings.HasPrefix(line, "| ") {
			continue
		}
		var known []float64
		for _, claim := range cited.FindAllStringSubmatch(line, -1) {
			n, _ := strconv.Atoi(claim[1])
			known = append(known, all[n]...)
		}
		if known == nil {
			continue
		}
		is := func(said string) bool {
			return slices.ContainsFunc(numbers(said), func(x float64) bool {
				return slices.ContainsFunc(known, func(is float64) bool { return math.Abs(x-is) <= is*0.05 })
			})
		}
		said, _, _ := strings.Cut(cited.ReplaceAllString(line, ""), "earlier runs")
		said, _, _ = strings.Cut(said, "another run")
		if !is(said) {
			t.Errorf("docs/GUIDE.md:%d: docs/evidence/CLAIMS.md has none of its figures: %s", i+1, line)
		}
		for _, decimal := range regexp.MustCompile(`\d+\.\d+`).FindAllString(said, -1) {
			if !is(decimal) {
				t.Errorf("docs/GUIDE.md:%d: docs/evidence/CLAIMS.md does not have %s: %s", i+1, decimal, line)
			}
		}
	}
}
