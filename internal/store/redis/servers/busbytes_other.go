//go:build !linux

package servers

import "net/netip"

// received returns nil: it needs Linux.
func received() map[netip.AddrPort]int64 { return nil }
