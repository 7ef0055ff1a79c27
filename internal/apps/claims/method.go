package claims

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// method explains how the figures of these claims were obtained and judged, in paragraphs.
func (d *Document) method() []string {
	var all []string
	if len(d.Libraries) > 0 {
		all = append(all, "Libraries: "+strings.Join(d.Libraries, ", ")+".")
	}
	if d.anyFigure(func(f FigureResult) bool { return f.Judged != "" }) {
		all = append(all, fmt.Sprintf("With its interval stands the median of the rounds. The interval has the true median in it with %s %% or more (order statistics): with 7 rounds it is from the smallest to the largest, "+
			"with 11 from the second-smallest to the second-largest, with 14 from the third. A limit is held if the interval's worse end keeps it, or where it says median, if that does; else it is missed. "+
			"Rounds that cannot be trusted are left out. What has no limit is reported.", results.Plain(confidence*100)))
	}
	if d.anyFigure(func(f FigureResult) bool { return f.Best != nil }) {
		all = append(all, "The strategies of a run take turns within a round, each round in an order of its own. A ratio to the best is to the best of the same round; behind it stands who that was, in how many rounds.")
	}
	return all
}

// anyFigure says whether such is true for a figure of the claims.
func (d *Document) anyFigure(such func(FigureResult) bool) bool {
	return slices.ContainsFunc(d.Claims, func(c Result) bool { return slices.ContainsFunc(c.Figures, such) })
}
