package main

import (
	"fmt"
	"strconv"
	"strings"
)

// sweep shows how the advantage depends on the clients of a process.
func (p *page) sweep(all map[string]measured) {
	var rows [][]string
	for _, instances := range instanceSweep {
		m, ok := all[fmt.Sprintf("instances%d", instances)]
		if instances == 10 {
			m, ok = all["hold1ms"]
		}
		if !ok {
			continue
		}
		for _, name := range ours {
			if !m.has(name) {
				continue
			}
			cells := []string{strconv.Itoa(m.instances), "`" + name + "`"}
			for _, c := range []struct {
				figure figure
				rivals []string
			}{{speed, peers[:]}, {speed, behindGates(peers[:])}, {p99, peers[:]}, {redisCPU, peers[:]}} {
				ratios, _ := c.figure.against(m, name, c.rivals)
				cells = append(cells, spread(ratios))
			}
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		return
	}
	p.line("## Over instances\n")
	p.line("Hold 1 ms, the same clients spread over more processes; medians of the rounds' ratios and their interval; a p99 is unbounded where a client's wait that was still open at the end of the window might have moved it. Peers here (10 instances stand with all): %s.\n", "`"+strings.Join(swept[:], "`, `")+"`")
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
