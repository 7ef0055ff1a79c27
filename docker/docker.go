//go:build !redisonly

// Package docker lets lockbench start servers in containers, with testcontainers. A program that measures only existing
// servers, or servers that lockbench starts as processes, needs no client for containers and does not import this
// package. Other programs import it for its side effect:
//
//	import _ "github.com/lockbench/lockbench/docker"
package docker

import "github.com/lockbench/lockbench/internal/launch/containers"

// Quiet turns testcontainers' logger off and prevents the start of its reaper, because lockbench removes its containers
// itself. Both are settings of the whole process, so only a command or a test calls Quiet, before it opens anything.
func Quiet() { containers.Quiet() }
