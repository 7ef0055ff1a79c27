// Command man writes lockbench's manual pages into a directory, for packages.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra/doc"

	"github.com/lockbench/lockbench/command"
	_ "github.com/lockbench/lockbench/strategies/all" // the pages name the default strategies
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func write(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("exactly one argument is needed, the output folder, not %q", args)
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	root := command.Root()
	root.DisableAutoGenTag = true
	root.Short = "measure distributed locks"
	header := &doc.GenManHeader{Section: "1", Source: "lockbench"}
	if err := doc.GenManTree(root, header, args[0]); err != nil {
		return fmt.Errorf("write the pages: %w", err)
	}
	for _, name := range []string{"lockbench.1", "lockbench-run.1"} {
		if err := complete(filepath.Join(args[0], name)); err != nil {
			return fmt.Errorf("add sections to %s: %w", name, err)
		}
	}
	return nil
}

// complete inserts the sections of command.Manual, which cobra does not generate, before the last section of a page.
func complete(file string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	last := []byte(".SH SEE ALSO")
	before, after, found := bytes.Cut(page, last)
	if !found {
		return fmt.Errorf("the page has no %q", last)
	}
	var all bytes.Buffer
	all.Write(before)
	for _, section := range command.Manual() {
		fmt.Fprintf(&all, ".SH %s\n", section.Title)
		for _, entry := range section.Entries {
			fmt.Fprintf(&all, ".TP\n\\fB%s\\fP\n%s\n", roff(entry.Name), roff(entry.Meaning))
		}
		all.WriteString("\n\n")
	}
	all.Write(last)
	all.Write(after)
	return os.WriteFile(file, all.Bytes(), 0o644)
}

// roff escapes a text for the man macros. The text must not begin with a dot or an apostrophe.
func roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", "").Replace(text)
}
