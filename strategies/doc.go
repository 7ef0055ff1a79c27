package strategies

import (
	"go/parser"
	"go/token"
)

// PackageComment returns the package comment of a Go source file, for Info.Doc: what
// a strategy's source says of it, people can then read without the source.
//
//	//go:embed ticket.go
//	var source string
//
// It panics on what is no Go source with such a comment, as it is meant for init
// functions.
func PackageComment(source string) string {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		panic("strategies: package comment: " + err.Error())
	}
	if file.Doc.Text() == "" {
		panic("strategies: there is no package comment in package " + file.Name.Name)
	}
	return file.Doc.Text()
}
