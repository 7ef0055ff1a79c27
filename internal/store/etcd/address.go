package etcd

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/lockbench/lockbench/internal/store"
)

// errAddress never repeats the given text: a part of it may be a password.
var errAddress = errors.New("the address of etcd must be auto, container, process, or etcd[s]://[user:password@]host:port[,host:port...]; percent-encode special characters of a password")

// address is a user's etcd, with the user's name and password.
type address struct {
	endpoints      []string // host:port
	user, password string
	tls            *tls.Config // nil means no TLS
}

// parseAddress parses an etcd:// or etcds:// address.
func parseAddress(o store.Options) (address, error) {
	var to address
	scheme, rest, ok := strings.Cut(o.Address, "://")
	if !ok || scheme != "etcd" && scheme != "etcds" {
		return to, errAddress
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		user, password, _ := strings.Cut(rest[:at], ":")
		var wrong [2]error
		to.user, wrong[0] = url.PathUnescape(user)
		to.password, wrong[1] = url.PathUnescape(password)
		if errors.Join(wrong[:]...) != nil {
			return to, errAddress
		}
		rest = rest[at+1:]
	} else {
		to.user, to.password = os.Getenv("LOCKBENCH_ETCD_USER"), os.Getenv("LOCKBENCH_ETCD_PASSWORD")
	}
	for endpoint := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), ",") {
		host, port, err := net.SplitHostPort(endpoint)
		if err != nil || host == "" || port == "" || strings.ContainsAny(endpoint, "/?# ") {
			return to, errAddress
		}
		to.endpoints = append(to.endpoints, endpoint)
	}
	if scheme == "etcds" {
		to.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	switch {
	case o.CAFile == "":
		return to, nil
	case to.tls == nil:
		return to, errCAFile
	}
	return to, store.Trust(to.tls, o.CAFile)
}

// url returns a member's URL for HTTP.
func (a address) url(endpoint, path string) string {
	return cmp.Or(map[bool]string{true: "https://"}[a.tls != nil], "http://") + endpoint + path
}
