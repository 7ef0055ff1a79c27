package strategies_test

import (
	"testing"

	"github.com/lockbench/lockbench/strategies"
)

func TestPackageComment(t *testing.T) {
	const source = "// Package p is\n// a lock.\n//\n//\tSET key\npackage p\n\n// F does more.\nfunc F() {"
	if got, want := strategies.PackageComment(source), "Package p is\na lock.\n\n\tSET key\n"; got != want {
		t.Errorf("the package comment is %q, want %q", got, want)
	}
	for _, source := range []string{"", "package p", "no Go"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q has a package comment", source)
				}
			}()
			strategies.PackageComment(source)
		}()
	}
}
