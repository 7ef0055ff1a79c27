package servers

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// received is what this machine's connected sockets on loopback have received, added
// up by their own address, as the kernel counts it; nil if it does not tell.
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
