package main

import (
	"fmt"
	"strconv"
)

// sweep shows how the advantage depends on the clients of a process.
func (p *page) sweep(all map[string]measured) {
	var behindGates []string
	for _, peer := range peers {
		behindGates = append(behindGates, gated(peer))
	}
	var rows [][]string
	for _, instances := range instanceSweep {
		m, ok := all[fmt.Sprintf("instances%d", instances)]
		if instances == 10 {
			m, ok = all["hold1ms"]
		}
		if !ok {
			continue
		}
		for _, ours := range []string{"handoff", "cohort"} {
			if !m.has(ours) {
				continue
			}
			cells := []string{strconv.Itoa(m.instances), "`" + ours + "`"}
			for _, c := range []struct {
				figure figure
				rivals []string
			}{{speed, peers[:]}, {speed, behindGates}, {p99, peers[:]}, {redisCPU, peers[:]}} {
				ratios, _ := c.figure.against(m, ours, c.rivals)
				cells = append(cells, spread(ratios))
			}
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		return
	}
	p.line("## Over instances\n")
	p.line("Hold 1 ms, the same clients spread over more processes; medians of the rounds' ratios and their interval.\n")
	p.header(2, "instances", "", "acq/s ÷ best peer", "÷ best gated:", "p99 wait ÷ best peer", "Redis CPU/acq ÷ cheapest peer")
	for _, cells := range rows {
		p.row(cells...)
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
