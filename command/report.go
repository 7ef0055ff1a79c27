package command

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/html"
	"github.com/lockbench/lockbench/results/render"
)

// pageFlags are the flags of report.
type pageFlags struct {
	file string
	png  string
}

func (a *app) report() *cobra.Command {
	p := &pageFlags{}
	cmd := &cobra.Command{
		Use:   "report RUN.json...",
		Short: "Show reports as a page for a browser, or their tables",
		Long: "Make one page of reports written by lockbench -o json=FILE, each a file, a directory or a quoted\n" +
			"glob: findings in plain words, pictures, tables. It needs no network. Runs of one workload with\n" +
			"several numbers of clients make its herd curve. Without --output it prints the table of each report.",
		Example: "  lockbench -s spin,pubsub,handoff --clients 10,100,500 -o json=run.json\n" +
			"  lockbench report run.json\n" +
			"  lockbench report run.json -o report.html\n" +
			"  lockbench report 'runs/*.json' -o report.html --png slides",
		Args:               cobra.ArbitraryArgs,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		ValidArgsFunction:  jsonFiles,
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.VarP(textValue("file", &p.file), "output", "o", "write the page to this file, or to standard output for - (default the table of each report)")
	set.Var(textValue("directory", &p.png), "png", "write every picture into this directory too, for slides; it is made if there is none")
	cmd.RunE = func(_ *cobra.Command, patterns []string) error {
		read, err := a.readFiles(patterns, odd)
		if faults := a.problems(source{set: set}, p.validate(patterns, !set.Changed("output")), clashes(reads("RUN.json", patterns...), p.written()), err); faults != nil {
			return faults
		}
		if p.file == "" {
			return a.printTables(read)
		}
		var files []html.File
		for _, f := range read {
			files = append(files, html.File{Name: f.name, Report: f.report})
		}
		return a.savePage(p, files)
	}
	return cmd
}

// validate returns all errors of the flags; tables says that there is to be no page.
func (p *pageFlags) validate(patterns []string, tables bool) error {
	var problems []error
	if !tables || p.png != "" {
		problems = append(problems, destination(p.file, "report.html"))
	}
	if len(patterns) == 0 {
		problems = append(problems, errors.New("RUN.json is needed: reports written by lockbench -o json=FILE"))
	}
	if p.png != "" {
		if stat, err := os.Stat(p.png); err == nil && !stat.IsDir() {
			problems = append(problems, fmt.Errorf("--png: %s is no directory", p.png))
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			problems = append(problems, fmt.Errorf("--png: %w", err))
		}
	}
	return errors.Join(problems...)
}

// written returns the page and the directory of the pictures.
func (p *pageFlags) written() []file {
	var files []file
	if p.file != "" {
		files = append(files, written(p.file))
	}
	if p.png != "" {
		files = append(files, file{"--png", p.png, p.png})
	}
	return files
}

// destination returns an error if a command cannot write its one file; - means standard
// output.
func destination(file, example string) error {
	switch file {
	case "":
		return fmt.Errorf("--output is needed: a file such as %s, or - for standard output", example)
	case "-":
		return nil
	}
	if format, rest, named := strings.Cut(file, "="); named && slices.Contains(append(reportFormats(nil).names(), "html"), format) {
		return fmt.Errorf("--output is a file here and takes no format: write %s in place of %s, or ./%s if that is its name", cmp.Or(rest, "-"), file, file)
	}
	if err := writable(file); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

// deliver writes content to a file; - means standard output.
func (a *app) deliver(file string, content []byte) error {
	if file == "-" {
		_, err := a.stdout.Write(content)
		return printed(err)
	}
	if err := replace(file, content); err != nil {
		return &exit{ExitFailure, fmt.Errorf("write %s: %w", file, err)}
	}
	return nil
}

// reportFile is a report and the file it was read from.
type reportFile struct {
	name   string
	report *results.Report
}

// jsonFiles lets a shell offer JSON files.
func jsonFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
}

// readFiles reads every report that the names and globs stand for, each file once. The
// error names all files that cannot be read.
func (a *app) readFiles(patterns []string, leaveOut bool) ([]reportFile, error) {
	var files []reportFile
	var problems []error
	for _, pattern := range patterns {
		more, err := a.readAll(pattern, leaveOut)
		problems = append(problems, err)
		for _, f := range more {
			if !slices.ContainsFunc(files, func(seen reportFile) bool { return filepath.Clean(seen.name) == filepath.Clean(f.name) }) {
				files = append(files, f)
			}
		}
	}
	return files, errors.Join(problems...)
}

// sources returns the files that the page is made of.
func sources(files []html.File) []file {
	var read []file
	for _, f := range files {
		read = append(read, reads("RUN.json", f.Name)...)
	}
	return read
}

// drawn returns the page and the pictures, whose names are known only after drawing.
func drawn(p *pageFlags, pictures []html.Picture) []file {
	files := []file{written(p.file)}
	for _, picture := range pictures {
		path := filepath.Join(p.png, picture.Name)
		files = append(files, file{"--png", path, path})
	}
	return files
}

// printTables prints the table of each report, under its file's name if there are several.
func (a *app) printTables(reports []reportFile) error {
	var text bytes.Buffer
	for i, f := range reports {
		if len(reports) > 1 {
			fmt.Fprintf(&text, "%s%s\n\n", strings.Repeat("\n", min(i, 1)), f.name)
		}
		if err := render.WriteTable(&text, f.report, colorful(a.stdout)); err != nil {
			return &exit{ExitFailure, fmt.Errorf("%s: %w", f.name, err)}
		}
	}
	_, err := a.stdout.Write(text.Bytes())
	return printed(err)
}

// savePage writes the page and its pictures. It draws all of them before it writes
// anything.
func (a *app) savePage(p *pageFlags, files []html.File) error {
	var page bytes.Buffer
	if err := html.Write(&page, files); err != nil {
		return &exit{ExitFailure, err}
	}
	var pictures []html.Picture
	if p.png != "" {
		var err error
		if pictures, err = html.Pictures(files); err != nil {
			return &exit{ExitFailure, err}
		}
	}
	if err := clashes(sources(files), drawn(p, pictures)); err != nil {
		return err
	}
	if p.png != "" {
		if err := os.MkdirAll(p.png, 0o777); err != nil {
			return &exit{ExitFailure, fmt.Errorf("make the directory of the pictures: %w", err)}
		}
	}
	for _, picture := range pictures {
		file := filepath.Join(p.png, picture.Name)
		if err := replace(file, picture.PNG); err != nil {
			return &exit{ExitFailure, fmt.Errorf("write %s: %w", file, err)}
		}
	}
	return a.deliver(p.file, page.Bytes())
}
