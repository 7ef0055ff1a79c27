//go:build !redisonly

// Package docker lets lockbench start servers in containers, with testcontainers. A program that measures only existing
// servers, or processes that lockbench starts, does not import it, and so does not compile a client for containers:
//
//	import _ "github.com/lockbench/lockbench/docker"
package docker

import "github.com/lockbench/lockbench/internal/launch/containers"

// Quiet turns testcontainers' logger off and prevents the start of its reaper, because lockbench removes its containers
// itself. Both are settings of the whole process, so only a command or a test calls Quiet, before it opens anything.
func Quiet() { containers.Quiet() }
