//go:build !redisonly

package main

import (
	"github.com/lockbench/lockbench/docker"
	_ "github.com/lockbench/lockbench/stores"
)

// What a lock in Redis on a server of this machine does not need is 40 % of what is compiled. make demo leaves it out
// by the tag redisonly, and command says so in its version and in errors.
func init() { docker.Quiet() }
