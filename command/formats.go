package command

import (
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/render"
)

// reportFormats returns the formats of a report. titles are those of its runs.
func reportFormats(titles []string) formats[*results.Report] {
	return formats[*results.Report]{
		one: map[string]writer[*results.Report]{
			"table":    render.WriteTable,
			"tables":   render.WriteTables,
			"markdown": plain(render.WriteMarkdown),
			"json":     plain(results.WriteJSON),
			"csv":      plain(render.WriteCSV),
			"benchfmt": plain(render.WriteBenchfmt),
		},
		several: map[string]func(string) []output[*results.Report]{
			"hgrm": func(file string) []output[*results.Report] {
				var files []output[*results.Report]
				for _, title := range titles {
					files = append(files, output[*results.Report]{format: "hgrm", file: part(file, title), write: func(w io.Writer, r *results.Report, _ bool) error {
						if !slices.Contains(render.HgrmNames(r), title) {
							return errNothing
						}
						return render.WriteHgrm(w, r, title)
					}})
				}
				return files
			},
		},
	}
}

// unfit matches characters that file names should not have.
var unfit = regexp.MustCompile(`[^\w.=,-]+`)

// part returns the name of one of a format's files: for waits.hgrm and the strategy spin
// it is waits-spin.hgrm.
func part(file, name string) string {
	extension := filepath.Ext(file)
	return strings.TrimSuffix(file, extension) + "-" + unfit.ReplaceAllString(name, "_") + extension
}
