// Package chaos is a test of our own locks in everyday use while everything around them
// breaks: connections, scripts, processes and Redis itself. It has no other code.
package chaos
