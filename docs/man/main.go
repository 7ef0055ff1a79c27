// Command man writes lockbench's manual pages into a folder, as packages need them.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/lockbench/lockbench/command"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func write(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("one folder is needed, not %q", args)
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	root := command.Root()
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "lockbench"}, args[0]); err != nil {
		return fmt.Errorf("write the pages: %w", err)
	}
	return nil
}
