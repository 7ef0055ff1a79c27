package store

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"

	"github.com/lockbench/lockbench/internal/untrusted"
)

// NetworkTo classifies an address, which is host:port or the path of a socket, as "unix socket", "loopback" or
// "remote".
func NetworkTo(addr string) string {
	if strings.HasPrefix(addr, "/") {
		return "unix socket"
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "remote"
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return "loopback"
	}
	return "remote"
}

// Remote reports whether an address may be on another machine.
func Remote(addr string) bool { return NetworkTo(addr) == "remote" }

// Trust makes config trust the certificates in a PEM file in addition to the system's certificates. Its errors name
// --ca-file.
func Trust(config *tls.Config, file string) error {
	pem, err := untrusted.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--ca-file: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil { // the machine has no system certificates
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("--ca-file: %s holds no PEM certificate", file)
	}
	config.RootCAs = roots
	return nil
}
