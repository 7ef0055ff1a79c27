package main

import "fmt"

// deployments shows ours beside the best peer and beside spin, a row for each of ours
// in each scenario; the rivals' own figures are in the scenarios' tables.
func (p *page) deployments(all []measured) {
	p.line("## Deployments\n")
	p.line("Medians of the rounds; behind them the medians of the rounds' ratios to the best peer of the round (for Redis CPU to the cheapest) and to `spin`, each with its interval. " +
		"A p99 is unbounded where a client's wait that was still open at the end of the window might have moved it. " +
		"The gap of `processes` is the time for which nobody held the lock, since no process sees who waits in another.\n")
	p.header(2, "scenario", "", "acq/s", "÷ best peer", "÷ spin", "gap", "÷ best peer", "p99 wait per client", "÷ best peer", "turns max − min", "Redis CPU/acq", "÷ cheapest peer", "÷ spin", "commands/acq")
	for _, m := range all {
		for _, ours := range m.those(isOurs) {
			beside := func(f figure, rivals func(string) bool) string {
				ratios, _ := f.against(m, ours, m.those(rivals))
				return spread(ratios)
			}
			c := medians(m, ours)
			p.row(m.name, "`"+ours+"`", c.speed, beside(speed, isPeer), beside(speed, isSpin), c.gap, beside(gap, isPeer),
				c.p99, beside(p99, isPeer), c.turns, c.cpu, beside(redisCPU, isPeer), beside(redisCPU, isSpin), c.commands)
		}
	}
	p.line("")
}

func spread(ratios []float64) string {
	if len(ratios) == 0 {
		return "–"
	}
	i := summarise(ratios)
	return fmt.Sprintf("%s (%s – %s)", ratio(i.median), ratio(i.low), ratio(i.high))
}
