//go:build !linux

package servers

func isServer(int, string) bool { return false }
