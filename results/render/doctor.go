package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// stateWidth is the room for a symptom's name and state.
const stateWidth = 22

// WriteDoctorTable writes it for people: a line for each symptom, below it what to do.
func WriteDoctorTable(w io.Writer, d *results.Doctor, opts TableOptions) error {
	var text bytes.Buffer
	paint := paint(opts.Color)
	for _, s := range d.Symptoms {
		head := fmt.Sprintf("%-13s%-*s", s.Name, stateWidth-13, s.State)
		if s.State == results.Trouble {
			head = paint.red(head)
		}
		for _, says := range s.Says {
			for i, line := range wrap(says, tableWidth-stateWidth, "  ") {
				if i > 0 {
					head = strings.Repeat(" ", stateWidth)
				}
				fmt.Fprintln(&text, head+line)
			}
			head = strings.Repeat(" ", stateWidth)
		}
		for _, next := range s.Next {
			for _, line := range wrap("next: "+next, tableWidth-stateWidth, "      ") {
				fmt.Fprintln(&text, strings.Repeat(" ", stateWidth)+line)
			}
		}
	}
	if err := writeTrimmed(w, text.String()); err != nil {
		return fmt.Errorf("write doctor: %w", err)
	}
	return nil
}
