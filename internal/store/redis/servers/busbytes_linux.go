package servers

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// These constants describe the kernel's messages, see sock_diag(7) and linux/inet_diag.h.
const (
	diagHeader    = 72  // size of inet_diag_msg; attributes follow it
	diagInfo      = 2   // INET_DIAG_INFO, the attribute that holds a tcp_info
	bytesReceived = 128 // offset of tcpi_bytes_received in tcp_info
)

// received returns how many bytes the connected loopback sockets of this machine have received, by local address, as
// the kernel counts them. It returns nil if the counts are not available.
func received() map[netip.AddrPort]int64 {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil
	}
	defer unix.Close(socket)
	sum := map[netip.AddrPort]int64{}
	buffer := make([]byte, 64<<10)
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		ask := make([]byte, 72) // a header and an inet_diag_req_v2
		binary.NativeEndian.PutUint32(ask, uint32(len(ask)))
		binary.NativeEndian.PutUint16(ask[4:], unix.SOCK_DIAG_BY_FAMILY)
		binary.NativeEndian.PutUint16(ask[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
		ask[16], ask[17], ask[18] = family, unix.IPPROTO_TCP, 1<<(diagInfo-1)
		binary.NativeEndian.PutUint32(ask[20:], 1<<unix.BPF_TCP_ESTABLISHED)
		if unix.Sendto(socket, ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
			return nil
		}
		for done := false; !done; {
			size, _, err := unix.Recvfrom(socket, buffer, 0)
			if err != nil {
				return nil
			}
			messages, err := syscall.ParseNetlinkMessage(buffer[:size])
			if err != nil {
				return nil
			}
			for _, message := range messages {
				switch message.Header.Type {
				case unix.NLMSG_ERROR:
					return nil
				case unix.NLMSG_DONE:
					done = true
				case unix.SOCK_DIAG_BY_FAMILY:
					countSocket(sum, family, message.Data)
				}
			}
		}
	}
	return sum
}

// countSocket adds the bytes of one socket to sum, if the socket is on the loopback interface.
func countSocket(sum map[netip.AddrPort]int64, family byte, socket []byte) {
	if len(socket) < diagHeader {
		return
	}
	size := 16
	if family == unix.AF_INET {
		size = 4
	}
	ip, _ := netip.AddrFromSlice(socket[8 : 8+size])
	if !ip.Unmap().IsLoopback() {
		return
	}
	at := netip.AddrPortFrom(ip.Unmap(), binary.BigEndian.Uint16(socket[4:]))
	for rest := socket[diagHeader:]; len(rest) >= 4; {
		length := int(binary.NativeEndian.Uint16(rest))
		if length < 4 || length > len(rest) {
			return
		}
		if binary.NativeEndian.Uint16(rest[2:]) == diagInfo && length >= 4+bytesReceived+8 {
			sum[at] += int64(binary.NativeEndian.Uint64(rest[4+bytesReceived:]))
		}
		rest = rest[min((length+3)&^3, len(rest)):]
	}
}
