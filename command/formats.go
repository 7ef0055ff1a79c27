package command

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/render"
)

// reportFormats returns the formats of a report. titles are those of its runs.
func reportFormats(titles []string) formats[*results.Report] {
	type outputs = []output[*results.Report]
	return formats[*results.Report]{
		one: map[string]writer[*results.Report]{
			"table":    render.WriteTable,
			"tables":   render.WriteTables,
			"markdown": plain(render.WriteMarkdown),
			"json":     plain(results.WriteJSON),
			"csv":      plain(render.WriteCSV),
			"benchfmt": plain(render.WriteBenchfmt),
			"bencher":  plain(render.WriteBencher),
			"hlog":     plain(render.WriteHlog),
		},
		several: map[string]func(string) outputs{
			"github": func(file string) outputs {
				return outputs{
					{format: "github", file: part(file, "smaller"), write: plain(func(w io.Writer, r *results.Report) error { return render.WriteGitHub(w, r, results.Lower) })},
					{format: "github", file: part(file, "bigger"), write: plain(func(w io.Writer, r *results.Report) error { return render.WriteGitHub(w, r, results.Higher) })},
				}
			},
			"otava": otava,
			"hgrm": func(file string) outputs {
				var files outputs
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

// otava returns two outputs: the CSV, which continues an existing file, and its configuration.
func otava(file string) []output[*results.Report] {
	existing := func() ([]byte, error) {
		stat, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !stat.Mode().IsRegular() {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return os.ReadFile(file)
	}
	config := strings.TrimSuffix(file, filepath.Ext(file)) + ".yaml"
	return []output[*results.Report]{
		{
			format: "otava", file: file,
			write: func(w io.Writer, r *results.Report, _ bool) error {
				content, err := existing()
				if err != nil {
					return err
				}
				return render.WriteOtava(w, r, content)
			},
			check: func() error {
				content, err := existing()
				if err != nil {
					return err
				}
				return render.CheckOtava(content)
			},
		},
		{format: "otava", file: config, write: func(w io.Writer, r *results.Report, _ bool) error {
			return render.WriteOtavaConfig(w, r, file)
		}},
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
