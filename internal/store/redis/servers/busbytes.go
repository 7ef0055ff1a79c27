package servers

import "net/netip"

// busBytes is what the other nodes of a cluster have sent to this one over its bus:
// Redis itself counts messages only. It is nil where the node's sockets are not to be
// seen from here.
func (n *node) busBytes(received map[netip.AddrPort]int64) *int64 {
	at, err := netip.ParseAddrPort(n.addr())
	if err != nil {
		return nil
	}
	if bytes, ok := received[netip.AddrPortFrom(at.Addr().Unmap(), at.Port()+busDistance)]; ok {
		return &bytes
	}
	return nil
}
