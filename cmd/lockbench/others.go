//go:build !redisonly

package main

import (
	"github.com/lockbench/lockbench/docker"
	_ "github.com/lockbench/lockbench/stores"
)

// The imports of this file are 40 % of the code that is compiled, and a benchmark of a local Redis does not need them.
// make demo leaves them out with the tag redisonly; package command reports the tag in the version and in errors.
func init() { docker.Quiet() }
