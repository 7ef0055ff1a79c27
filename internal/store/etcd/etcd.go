// Package etcd is the store etcd: one member or three that lockbench starts, or a user's own, which it leaves as it
// was.
package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
)

// Name is the store's name in strategies.
const Name = "etcd"

func init() { store.Register(Name, Store{}) }

// kind is what etcd is among such stores.
var kind = ensemble.Kind{Name: Name, Title: "etcd", A: "an", Most: 3, ToAll: true, NoPinning: true}

// Store is etcd.
type Store struct{}

// Title returns the store's name.
func (Store) Title() string { return kind.Title }

// Schemes returns the schemes of its addresses.
func (Store) Schemes() []string { return []string{"etcd", "etcds"} }

// Needs returns the rights that a user of etcd needs.
func (Store) Needs(keys string) []string {
	return []string{
		"etcdctl role grant-permission bench readwrite --prefix=true " + keys,
		"and a majority of its members: a lock is a write that they agree on",
	}
}

// Validate returns every error of the options, see store.Store.
func (Store) Validate(o store.Options) (err error) {
	if !o.Started() {
		_, err = parseAddress(o)
	} else if o.CAFile != "" {
		err = errCAFile
	}
	return kind.Validate(o, err)
}

// Layout is one member by default; a user's etcd is not known yet.
func (Store) Layout(o store.Options) store.Layout { return kind.Layout(o) }

// errAddress never repeats the given text: a part of it may be a password.
var (
	errAddress = errors.New("the address of etcd must be auto, process, or " +
		"etcd[s]://[user:password@]host:port[,host:port...]; percent-encode special characters of a password")
	errCAFile = errors.New("--ca-file is for etcds:// addresses")
)

// address is where an etcd is, with the user's name and password.
type address struct {
	endpoints      []string // host:port
	user, password string
	tls            *tls.Config // nil means no TLS
}

// parseAddress parses an etcd:// or etcds:// address.
func parseAddress(o store.Options) (to address, err error) {
	u, err := url.Parse(o.Address)
	if err != nil || !slices.Contains(Store{}.Schemes(), u.Scheme) ||
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

// Open finds or starts the etcd that the options name, see store.Store.
func (k Store) Open(ctx context.Context, runID string, o store.Options) (store.Server, error) {
	if err := k.Validate(o); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrConfig, err)
	}
	s := &Server{runID: runID}
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

func (s *Server) open(ctx context.Context, o store.Options) (err error) {
	s.Layout = kind.Layout(o)
	asked := s.Members
	if s.Started {
		if err := s.start(ctx, o); err != nil {
			return err
		}
	} else {
		if s.to, err = parseAddress(o); err != nil {
			return fmt.Errorf("%w: %w", store.ErrConfig, err)
		}
		s.Find(ctx, o, s.to.endpoints...)
		s.About.TLS = s.to.tls != nil
	}
	s.members = make([]member, len(s.to.endpoints))
	if err := s.connect(ctx); err != nil {
		return s.because(ctx, err)
	}
	if asked > 0 && asked != s.Members {
		return fmt.Errorf("%w: --topology %s, and there are %d addresses", store.ErrConfig, o.Topology, s.Members)
	}
	if !s.Started {
		var left store.Swept
		s.keys().Look(ctx, &left)
		left.Tell(s.About.Address, o.Warn, o.Logf)
	}
	return nil
}
