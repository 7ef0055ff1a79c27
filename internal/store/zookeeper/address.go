package zookeeper

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/strategies/gozk"
)

// errAddress never repeats the given text: if the text cannot be parsed, any part of it may be a
// password.
var errAddress = errors.New("the address of a ZooKeeper must be auto, container, process or zk://[user:password@]host:port[,host:port…][/chroot]; " +
	"percent-encode special characters of a password")

// authEnv holds user:password of the digest scheme; ps does not show it.
const authEnv = "LOCKBENCH_ZK_AUTH"

// parseAddress parses a user's address: servers, user and root node.
func parseAddress(address string) (gozk.Node, error) {
	rest, ok := strings.CutPrefix(address, "zk://")
	if !ok {
		return gozk.Node{}, errAddress
	}
	node := gozk.Node{Auth: os.Getenv(authEnv)}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		auth, err := url.PathUnescape(rest[:at])
		if err != nil {
			return gozk.Node{}, errAddress
		}
		node.Auth, rest = auth, rest[at+1:]
	}
	if node.Auth != "" && !strings.Contains(node.Auth, ":") {
		return gozk.Node{}, errors.New("who one is on a ZooKeeper is user:password, in the address or in " + authEnv)
	}
	hosts, chroot, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		server, err := hostPort(host)
		if err != nil {
			return gozk.Node{}, err
		}
		node.Servers = append(node.Servers, server)
	}
	if chroot = strings.Trim(chroot, "/"); chroot != "" {
		node.Root = "/" + chroot
	}
	if strings.ContainsAny(chroot, "?#") || strings.Contains(chroot, "//") {
		return gozk.Node{}, errAddress
	}
	return node, nil
}

// hostPort adds ZooKeeper's default port.
func hostPort(host string) (string, error) {
	const usual = "2181"
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port, err = net.SplitHostPort(host + ":" + usual)
	}
	if n, bad := strconv.ParseUint(cmp.Or(port, "0"), 10, 16); err != nil || bad != nil || n == 0 || name == "" || strings.ContainsAny(name, " ?#") {
		return "", errAddress
	}
	return net.JoinHostPort(name, port), nil
}

// parseTopology returns the requested number of members; 0 means not specified.
func parseTopology(text string) (int, error) {
	switch text {
	case "":
		return 0, nil
	case "single", name:
		return 1, nil
	}
	if number, ok := strings.CutPrefix(text, name+":"); ok {
		if n, err := strconv.Atoi(number); err == nil && n >= 1 && n <= most && n%2 == 1 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("--topology of a ZooKeeper must be single, or zookeeper:N with 1, 3, 5 or %d members, not %q", most, text)
}

// most is the number of members above which an ensemble is slower and not safer.
const most = 7

// topologyOf writes a topology in the form of parseTopology.
func topologyOf(members int) string {
	if members == 1 {
		return "single"
	}
	return fmt.Sprintf("%s:%d", name, members)
}
