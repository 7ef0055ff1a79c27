// Package zookeeper is the store ZooKeeper: a server or an ensemble that lockbench starts, or the user's servers. A run
// leaves none of its nodes in the user's tree.
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

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// name is the name of the store in the registry and in topologies such as zookeeper:3.
const name = "zookeeper"

// Store returns ZooKeeper as a store of package ensemble. Lockbench starts at most seven members, because each further
// member enlarges the quorum that must confirm a write, and so makes writes slower.
func Store() ensemble.Store {
	return ensemble.Store{
		Name: name, Official: "ZooKeeper", URLs: []string{"zk"}, Most: 7,
		Rights: []string{
			"to create, delete, read and write nodes below the root, or below PATH of zk://host:port/PATH " +
				"(setAcl PATH auth:bench:cdrw)",
			"and a quorum of its members, because every lock is a write that a quorum must confirm",
		},
		Address: func(o store.Options) (encrypted error) {
			if o.CAFile != "" {
				encrypted = errors.New("--ca-file is not supported with ZooKeeper: lockbench connects to it without TLS")
			}
			_, err := parseAddress(o.Address)
			return errors.Join(err, encrypted)
		},
		New: func(s ensemble.Servers) ensemble.Server {
			return &Server{Servers: s, open: map[string]*netfault.Conns{}}
		},
	}
}

func init() { store.Register(name, Store()) }

// ErrUnreachable reports that no ZooKeeper could be reached or started.
var ErrUnreachable = fmt.Errorf("ZooKeeper %w", store.ErrUnreachable)

// errAddress reports a malformed address. It does not quote the address, because any part of it may be a password.
var errAddress = errors.New("a ZooKeeper address must be auto, process or " +
	"zk://[user:password@]host:port[,host:port…][/chroot]; percent-encode special characters of a password")

// authEnv names the environment variable that holds user:password for the digest scheme. With ps, other users of the
// machine can see arguments but not this variable.
const authEnv = "LOCKBENCH_ZK_AUTH"

// parseAddress parses a user's address into servers, user and root node.
func parseAddress(address string) (gozk.Node, error) {
	rest, ok := strings.CutPrefix(address, "zk://")
	node := gozk.Node{Auth: os.Getenv(authEnv)}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		var err error
		node.Auth, err = url.PathUnescape(rest[:at])
		rest, ok = rest[at+1:], ok && err == nil
	}
	if node.Auth != "" && !strings.Contains(node.Auth, ":") {
		return gozk.Node{}, errors.New("ZooKeeper credentials must have the form user:password, in the address or " +
			"in " + authEnv)
	}
	hosts, chroot, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		server, valid := hostPort(host)
		node.Servers, ok = append(node.Servers, server), ok && valid
	}
	if chroot = strings.Trim(chroot, "/"); chroot != "" {
		node.Root = "/" + chroot
	}
	if !ok || strings.ContainsAny(chroot, "?#") || strings.Contains(chroot, "//") {
		return gozk.Node{}, errAddress
	}
	return node, nil
}

// hostPort adds ZooKeeper's default port to an address without a port, and reports whether host and port are valid.
func hostPort(host string) (server string, valid bool) {
	const usual = ":2181"
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port, err = net.SplitHostPort(host + usual)
	}
	n, bad := strconv.ParseUint(cmp.Or(port, "0"), 10, 16)
	valid = err == nil && bad == nil && n > 0 && name != "" && !strings.ContainsAny(name, " ?#")
	return net.JoinHostPort(name, port), valid
}
