package etcd

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
)

// Title returns the store's name.
func (Store) Title() string { return "etcd" }

// Speaks says whether an etcd reports its version there, with or without TLS.
func (Store) Speaks(ctx context.Context, addr string) bool {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}} //nolint:gosec // nothing is sent
	defer transport.CloseIdleConnections()
	for _, scheme := range []string{"http://", "https://"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+addr+"/version", nil)
		if err != nil {
			return false
		}
		answer, err := transport.RoundTrip(request)
		if err != nil {
			continue
		}
		var told struct {
			Server string `json:"etcdserver"`
		}
		err = json.NewDecoder(io.LimitReader(answer.Body, 1<<10)).Decode(&told)
		_ = answer.Body.Close()
		if err == nil && told.Server != "" {
			return true
		}
	}
	return false
}

// Needs returns the rights that a user of etcd needs.
func (Store) Needs(keys string) []string {
	return []string{
		"etcdctl role grant-permission bench readwrite --prefix=true " + keys,
		"and a majority of its members: a lock is a write that they agree on",
	}
}
