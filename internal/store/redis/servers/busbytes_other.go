//go:build !linux

package servers

import "net/netip"

// received returns nil, because it needs Linux.
func received() map[netip.AddrPort]int64 { return nil }
