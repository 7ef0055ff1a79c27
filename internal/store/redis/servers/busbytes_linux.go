package servers

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// received returns the bytes that this machine's connected loopback sockets have received, summed
// by local address, as the kernel counts them; nil if not available.
func received() map[netip.AddrPort]int64 {
	sum := map[netip.AddrPort]int64{}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, err := netlink.SocketDiagTCPInfo(family)
		if err != nil {
			return nil
		}
		for _, socket := range sockets {
			at := socket.InetDiagMsg
			ip, ok := netip.AddrFromSlice(at.ID.Source)
			if socket.TCPInfo != nil && at.State == netlink.TCP_ESTABLISHED && ok && ip.Unmap().IsLoopback() {
				sum[netip.AddrPortFrom(ip.Unmap(), at.ID.SourcePort)] += int64(socket.TCPInfo.Bytes_received)
			}
		}
	}
	return sum
}
