package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What lockbench list shows of a strategy is what its package comment says.
func TestDocsAreUpToDate(t *testing.T) {
	want, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("strategies/all/docs.go is stale: run go generate ./strategies/all")
	}
}

// folder makes a package all that imports a strategy of these files.
func folder(t *testing.T, files ...string) (all string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("all/all.go", "package all\n\nimport (\n\t\"fmt\"\n\n\t_ \""+parent+"peers/ticket\"\n)\n")
	for i, content := range files {
		write("peers/ticket/"+strconv.Itoa(i)+".go", content)
	}
	write("peers/ticket/ticket_test.go", "// Package ticket_test is not of interest.\npackage ticket_test\n")
	return filepath.Join(dir, "all")
}

func TestPackageCommentsAreKept(t *testing.T) {
	for _, comment := range []string{"Package p is\na lock.\n\n\tSET key\n", "Package p says `back quotes` and\nmore.\n"} {
		source := "// " + strings.ReplaceAll(strings.TrimSuffix(comment, "\n"), "\n", "\n// ") + "\npackage ticket\n\n// F does more.\nfunc F() {}\n"
		generated, err := generate(folder(t, "package ticket\n", source))
		if err != nil {
			t.Fatal(err)
		}
		if name, value := constant(t, generated); name != "ticketDoc" || value != comment {
			t.Errorf("it has %s = %q, want ticketDoc = %q", name, value, comment)
		}
	}
}

// constant is the first of a file.
func constant(t *testing.T, source []byte) (name, value string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "docs.go", source, 0)
	if err != nil {
		t.Fatalf("%v:\n%s", err, source)
	}
	spec := file.Decls[0].(*ast.GenDecl).Specs[0].(*ast.ValueSpec)
	value, err = strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
	if err != nil {
		t.Fatal(err)
	}
	return spec.Names[0].Name, value
}

func TestRefusesWhatHasNoPackageComment(t *testing.T) {
	const commented = "// Package ticket is a lock.\npackage ticket\n"
	for _, files := range [][]string{{}, {"package ticket\n"}, {commented, commented}, {"no Go"}} {
		if generated, err := generate(folder(t, files...)); err == nil {
			t.Errorf("%q were accepted:\n%s", files, generated)
		}
	}
}
