//go:build !redisonly

package main

import (
	"github.com/lockbench/lockbench/docker"
	_ "github.com/lockbench/lockbench/stores"
)

// The imports of this file make up 40 % of the compiled code, and a benchmark of a local Redis does not need them.
// "make demo" leaves this file out with the tag redisonly. Package command reports the tag in the version and in
// errors.
func init() { docker.Quiet() }
