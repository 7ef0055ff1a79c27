// Package etcd implements the store etcd: lockbench starts one or three members, or uses a user's etcd. A run leaves
// nothing on a user's etcd.
package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
)

// Name is the name of the store in the registry and in a strategy's Info.Store.
const Name = "etcd"

func init() { store.Register(Name, Store()) }

// Store returns etcd as a store of package ensemble.
func Store() ensemble.Store {
	return ensemble.Store{
		Name: Name, Official: "etcd", URLs: []string{"etcd", "etcds"}, Most: 3, ToAll: true,
		Rights: []string{
			"etcdctl role grant-permission bench readwrite --prefix=true lockbench",
			"and a majority of its members, because every lock is a write that a majority must confirm",
		},
		Address: func(o store.Options) error {
			_, err := parseAddress(o)
			return err
		},
		New: func(s ensemble.Servers) ensemble.Server { return &Server{Servers: s} },
	}
}

// errAddress reports a malformed address. It does not quote the address, because any part of it may be a password.
var (
	errAddress = errors.New("the address of etcd must be auto, process, or " +
		"etcd[s]://[user:password@]host:port[,host:port...]; percent-encode special characters of a password")
	errCAFile = errors.New("--ca-file needs an etcds:// address")
)

// address holds the endpoints of an etcd, and the name and the password of the user.
type address struct {
	endpoints      []string // host:port
	user, password string
	tls            *tls.Config // nil means no TLS
}

// parseAddress parses an etcd:// or etcds:// address. The environment supplies the user if the address names none.
func parseAddress(o store.Options) (to address, err error) {
	u, err := url.Parse(o.Address)
	if err != nil || u.Scheme != "etcd" && u.Scheme != "etcds" ||
		strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" {
		return to, errAddress
	}
	to.user, to.password = os.Getenv("LOCKBENCH_ETCD_USER"), os.Getenv("LOCKBENCH_ETCD_PASSWORD")
	if u.User != nil {
		to.user = u.User.Username()
		to.password, _ = u.User.Password()
	}
	to.endpoints = strings.Split(u.Host, ",")
	for _, endpoint := range to.endpoints {
		if host, port, err := net.SplitHostPort(endpoint); err != nil || host == "" || port == "" {
			return to, errAddress
		}
	}
	if u.Scheme == "etcds" {
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

// Begin implements ensemble.Server. It finds or starts the etcd that the options describe.
func (s *Server) Begin(ctx context.Context, o store.Options) (err error) {
	if s.Started {
		err = s.start(ctx, o)
	} else if s.to, err = parseAddress(o); err == nil {
		s.Find(ctx, o, s.to.endpoints...)
		s.About.TLS = s.to.tls != nil
	}
	if err != nil {
		return err
	}
	s.members = make([]member, len(s.to.endpoints))
	if err := s.connect(ctx); err != nil {
		return s.because(ctx, err)
	}
	return nil
}
