package servers

import "net/netip"

// busBytes returns the bytes that the other nodes of a cluster sent to this one on its bus; Redis
// itself counts only messages. It returns nil if the node's sockets are not visible here.
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
