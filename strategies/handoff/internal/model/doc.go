// Package model is the argument of ../../DESIGN.md in a form that can be searched: a
// test plays every interleaving of a small world, and finds the known mistakes when
// they are planted.
package model
