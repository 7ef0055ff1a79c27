package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// within is the median with its interval, and of how many rounds.
func within(f results.ClaimFigure) string {
	i := f.Interval
	if i == nil {
		return results.NotKnown
	}
	rounds := plural(i.Rounds, "round")
	if i.Rounds < len(f.Values) {
		rounds = fmt.Sprintf("%d of %d rounds", i.Rounds, len(f.Values))
	}
	if i.Confidence == 0 {
		rounds += ", too few for an interval"
	}
	return fmt.Sprintf("%s (%s … %s), %s", writeClaimed(f, i.Median), writeClaimed(f, i.Low), writeClaimed(f, i.High), rounds)
}

// bestOf says who was the best in how many rounds; "" where nobody was looked for.
func bestOf(f results.ClaimFigure) string {
	var all []string
	for _, best := range f.BestRounds() {
		all = append(all, fmt.Sprintf("%s (%d)", best.Name, best.Rounds))
	}
	return strings.Join(all, ", ")
}

// anyFigure says whether some figure of the claims is such.
func anyFigure(c *results.Claims, such func(results.ClaimFigure) bool) bool {
	for _, claim := range c.Claims {
		for _, f := range claim.Figures {
			if such(f) {
				return true
			}
		}
	}
	return false
}

// howJudged explains what stands in the tables of these claims, a paragraph each.
func howJudged(c *results.Claims) []string {
	var all []string
	if len(c.Libraries) > 0 {
		all = append(all, "Libraries: "+strings.Join(c.Libraries, ", ")+".")
	}
	if anyFigure(c, func(f results.ClaimFigure) bool { return f.Judged != "" }) {
		all = append(all, fmt.Sprintf("With its interval stands the median of the rounds. The interval has the true median in it with %s %% or more (order statistics): with 7 rounds it is from the smallest to the largest, "+
			"with 11 from the second-smallest to the second-largest, with 14 from the third. A limit is held if the interval's worse end keeps it, or where it says median, if that does; else it is missed. "+
			"Rounds that cannot be trusted are left out. What has no limit is reported.", results.Plain(results.ClaimConfidence*100)))
	}
	if anyFigure(c, func(f results.ClaimFigure) bool { return f.Best != nil }) {
		all = append(all, "The strategies of a run take turns within a round, each round in an order of its own. A ratio to the best is to the best of the same round; behind it stands who that was, in how many rounds.")
	}
	return all
}

// shownTable writes what a run came to beside what was expected of it.
func shownTable(w io.Writer, run results.ClaimRun) {
	s := run.Shown
	if s == nil || len(s.Strategies) == 0 {
		return
	}
	fmt.Fprintf(w, "\n`%s`, medians of the rounds: %s", run.Name, plural(s.Runs, "run"))
	if s.LeftOut > 0 {
		fmt.Fprintf(w, ", %d left out because they could not be trusted", s.LeftOut)
	}
	if s.Hurried > 0 {
		fmt.Fprintf(w, "; in %d the machine set the pace, not the lock", s.Hurried)
	}
	fmt.Fprint(w, "\n\n|  |")
	for _, f := range s.Strategies[0].Figures {
		fmt.Fprintf(w, " %s |", markdownText(f.Metric))
	}
	fmt.Fprintf(w, "\n| --- |%s\n", strings.Repeat(" ---: |", len(s.Strategies[0].Figures)))
	for _, one := range s.Strategies {
		fmt.Fprintf(w, "| `%s` |", one.Name)
		for _, f := range one.Figures {
			fmt.Fprintf(w, " %s |", f.Value.Text(f.Unit))
		}
		fmt.Fprintln(w)
	}
}
