//go:build !unix

package lockbench

// maxOpenFiles is not limited here.
func maxOpenFiles() (int64, error) { return 0, nil }
