package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/lockbench/lockbench/internal/layout"
)

// stateWidth is the width of a symptom's name and state.
const stateWidth = 22

// WriteTable writes the document for people: a line for each symptom, and below it what to do.
func WriteTable(w io.Writer, d *Document, color bool) error {
	p := &layout.Page{Paint: layout.Paint(color)}
	for _, s := range d.Symptoms {
		head := fmt.Sprintf("%-13s%-*s", s.Name, stateWidth-13, s.State)
		if s.State == Trouble {
			head = p.Red(head)
		}
		write := func(text, indent string) {
			for _, line := range layout.Wrap(text, layout.Width-stateWidth, indent) {
				fmt.Fprintln(p, head+line)
				head = strings.Repeat(" ", stateWidth)
			}
		}
		for _, says := range s.Says {
			write(says, "  ")
		}
		for _, next := range s.Next {
			write("next: "+next, "      ")
		}
	}
	return p.Save(w, "doctor")
}
