//go:build !redisonly

// Package docker has lockbench start servers in containers, by testcontainers. Who measures
// on servers of his own, or on processes that lockbench starts, does without it and
// compiles no client for containers:
//
//	import _ "github.com/lockbench/lockbench/docker"
package docker

import "github.com/lockbench/lockbench/internal/launch/containers"

// Quiet keeps testcontainers' logger off the terminal, and its reaper from being started:
// lockbench sweeps by itself. Both are settings of the whole process, for a command or a
// test to make before it opens anything.
func Quiet() { containers.Quiet() }
