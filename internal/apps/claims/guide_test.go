package claims

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	number = regexp.MustCompile(`\d+(?:\.\d+)?`)
	cited  = regexp.MustCompile(`\[claim (\d+)\]\(evidence/CLAIMS\.md#claim-(\d+)\)`)
)

// numbers returns the numbers in a text in the order in which they occur, without commas between thousands.
func numbers(text string) []float64 {
	var all []float64
	for _, digits := range number.FindAllString(strings.ReplaceAll(text, ",", ""), -1) {
		x, _ := strconv.ParseFloat(digits, 64) // cannot fail, because the pattern matches only numbers
		all = append(all, x)
	}
	return all
}

func read(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// published returns the figures in docs/evidence/CLAIMS.md by the number of the claim.
func published(t *testing.T) map[string][]float64 {
	t.Helper()
	all := map[string][]float64{}
	claim := ""
	for _, line := range read(t, "evidence/CLAIMS.md") {
		if heading, is := strings.CutPrefix(line, "## "); is {
			claim, _, _ = strings.Cut(heading, ".")
		}
		if cells := strings.Split(line, " | "); claim != "" && len(cells) > 3 {
			if !strings.HasPrefix(line, "| `") { // a row of figures; in a row of a strategy, all cells count
				cells = cells[:2]
			}
			all[claim] = append(all[claim], numbers(strings.Join(cells, " "))...)
		}
	}
	return all
}

// Each item of docs/GUIDE.md must contain a figure and cite its source. If it cites claims, its figures are compared
// with those of the claims in docs/evidence/CLAIMS.md and with their reciprocals. At least one figure of the item, and
// each figure with a decimal point, must match within 5 %. Text after "another run" or "earlier runs" is not checked.
func TestGuideFiguresMatchClaims(t *testing.T) {
	t.Parallel()
	all := published(t)
	sentences := 0
	for i, line := range read(t, "GUIDE.md") {
		wrong := func(format string, args ...any) {
			t.Errorf("docs/GUIDE.md:%d: "+format, append([]any{i + 1}, args...)...)
		}
		var known []float64
		for _, claim := range cited.FindAllStringSubmatch(line, -1) {
			if claim[1] != claim[2] {
				wrong("the citation of claim %s links to claim %s", claim[1], claim[2])
			}
			if all[claim[1]] == nil {
				wrong("docs/evidence/CLAIMS.md has no figures of claim %s", claim[1])
			}
			known = append(known, all[claim[1]]...)
		}
		said := cited.ReplaceAllString(line, "")
		if strings.HasPrefix(line, "- ") {
			sentences++
			if known == nil && !strings.Contains(said, "(evidence/LANGUAGES.md)") && !strings.Contains(said, "(DRIVERS.md#") {
				wrong("it does not say where it is from: %s", said)
			}
			if !number.MatchString(said) {
				wrong("it has no figure: %s", said)
			}
		} else if !strings.HasPrefix(line, "| ") {
			continue
		}
		if known == nil {
			continue
		}
		said, _, _ = strings.Cut(said, "earlier runs")
		said, _, _ = strings.Cut(said, "another run")
		is := func(said string) bool {
			return slices.ContainsFunc(numbers(said), func(x float64) bool {
				return slices.ContainsFunc(known, func(is float64) bool {
					return math.Abs(x-is) <= is*0.05 || is > 0 && math.Abs(x-1/is) <= 0.05/is // "25 times fewer"
				})
			})
		}
		if !is(said) {
			wrong("docs/evidence/CLAIMS.md has none of its figures: %s", line)
		}
		for _, decimal := range regexp.MustCompile(`\d+\.\d+`).FindAllString(said, -1) {
			if !is(decimal) {
				wrong("docs/evidence/CLAIMS.md does not have %s: %s", decimal, line)
			}
		}
	}
	if sentences < 10 {
		t.Errorf("docs/GUIDE.md has %d sentences", sentences)
	}
}

// docs/evidence/CLAIMS.md must contain each figure of each claim, followed by the figure of its counter-case.
func TestClaimsPageHasEveryFigure(t *testing.T) {
	t.Parallel()
	plain := strings.NewReplacer(`\`, "", "&lt;", "<", "&amp;", "&", "\u200b", "")
	rows := map[string][]string{}
	claim := ""
	for _, line := range read(t, "evidence/CLAIMS.md") {
		if heading, is := strings.CutPrefix(line, "## "); is {
			claim, _, _ = strings.Cut(heading, ".")
		}
		row, is := strings.CutPrefix(line, "| ")
		if row, _, _ = strings.Cut(plain.Replace(row), " | "); is && claim != "" && !strings.HasPrefix(row, "`") {
			rows[claim] = append(rows[claim], row)
		}
	}
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, claim := range all {
		want := []string{"figure", "---"}
		for _, figure := range claim.Expect {
			want = append(want, plain.Replace(string(figure.What)))
			if figure.Counter != nil {
				want = append(want, plain.Replace("with "+string(figure.Counter.With)))
			}
		}
		if got := rows[claim.Name()]; !slices.Equal(got[:min(len(got), len(want))], want) {
			t.Errorf("claim %s: docs/evidence/CLAIMS.md has the figures\n%q, want\n%q", claim.Name(), got, want)
		}
	}
}

// Each test that a claim names must exist, so that the page of claims refers to no renamed test.
func TestClaimsNameExistingTests(t *testing.T) {
	t.Parallel()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, claim := range all {
		for _, named := range claim.Tests {
			folder, name, _ := strings.Cut(string(named), " ")
			name, _, _ = strings.Cut(name, "/")
			files, err := filepath.Glob(filepath.Join("../../..", folder, "*.go"))
			if err != nil {
				t.Fatal(err)
			}
			there := false
			for _, file := range files {
				source, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				there = there || strings.Contains(string(source), "func "+name+"(") ||
					strings.Contains(string(source), `"`+strings.Trim(name, "“”")+`"`)
			}
			if !there {
				t.Errorf("%s: there is no test %s in %s", claim.Name(), name, folder)
			}
		}
	}
}
