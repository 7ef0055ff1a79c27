package servers

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// received must count bytes of connections over IPv4, over IPv6, and over IPv4 to a dual-stack socket.
func TestReceived(t *testing.T) {
	t.Parallel()
	if received() == nil {
		t.Skip("the kernel does not report the bytes")
	}
	for _, test := range []struct{ listen, dial string }{
		{"127.0.0.1:0", "127.0.0.1"}, {"[::1]:0", "::1"}, {"[::]:0", "127.0.0.1"},
	} {
		listener, err := net.Listen("tcp", test.listen)
		if err != nil {
			t.Logf("%s: %v", test.listen, err)
			continue
		}
		defer listener.Close()
		at := netip.AddrPortFrom(netip.MustParseAddr(test.dial), uint16(listener.Addr().(*net.TCPAddr).Port))
		client, err := net.Dial("tcp", at.String())
		must(t, err)
		defer client.Close()
		server, err := listener.Accept()
		must(t, err)
		defer server.Close()
		const size = 12345
		_, err = client.Write(make([]byte, size))
		must(t, err)
		_, err = io.ReadFull(server, make([]byte, size))
		must(t, err)
		if n := received()[at]; n != size {
			t.Errorf("%s received %d bytes, not %d", at, n, size)
		}
	}
}

// The kernel's message is truncated, or an attribute has a wrong length. No bytes may be counted.
func TestTruncatedSocketMessages(t *testing.T) {
	t.Parallel()
	attribute := func(kind uint16, length int, content ...byte) []byte {
		text := binary.NativeEndian.AppendUint16(nil, uint16(length))
		return append(binary.NativeEndian.AppendUint16(text, kind), content...)
	}
	header := make([]byte, diagHeader)
	copy(header[8:], []byte{127, 0, 0, 1})
	info := make([]byte, bytesReceived+8)
	binary.NativeEndian.PutUint64(info[bytesReceived:], 7)
	whole := slices.Concat(header, attribute(8, 5, 1, 0, 0, 0), attribute(diagInfo, 4+len(info), info...))
	at := netip.MustParseAddrPort("127.0.0.1:0")
	for end := range len(whole) + 1 {
		sum := map[netip.AddrPort]int64{}
		for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
			countSocket(sum, family, whole[:end])
		}
		if complete := end == len(whole); complete != (sum[at] == 7) || !complete && len(sum) > 0 {
			t.Errorf("%d bytes of %d: %v", end, len(whole), sum)
		}
	}
	for _, length := range []int{0, 3, 5, 1 << 15} {
		sum := map[netip.AddrPort]int64{}
		countSocket(sum, unix.AF_INET, slices.Concat(header, attribute(diagInfo, length, info...)))
		if len(sum) > 0 {
			t.Errorf("an attribute of %d bytes: %v", length, sum)
		}
	}
}
