// Package chaos is a test of our own locks in everyday use while everything around them
// breaks: connections, scripts, processes, packets that come late, and Redis itself, which
// fails over, refuses writes, moves its slots and has its clock set. It has no other code.
package chaos
