module example.com/ownlock

go 1.26.0

require (
	github.com/lockbench/lockbench v0.0.0
	github.com/redis/go-redis/v9 v9.23.0
)

require (
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

// In a project of your own: go get github.com/lockbench/lockbench, and no replace.
replace github.com/lockbench/lockbench => ../..
