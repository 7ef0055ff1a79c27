package etcd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

// Read reads the counters of all members and adds them up. If a member does not reply, Read uses the member's last
// known values. Read omits etcd's byte counters, because they do not include the frames of messages and so are not
// comparable with those of other stores.
func (s *Server) Read(ctx context.Context) (results.Reading, error) {
	began := time.Now()
	problems := make([]error, len(s.members))
	var all sync.WaitGroup
	for i, endpoint := range s.to.endpoints {
		all.Go(func() { problems[i] = s.metrics(ctx, endpoint, &s.members[i].counters) })
	}
	all.Wait()
	if !slices.Contains(problems, nil) { // a live etcd may not serve its counters
		if err := s.Ping(ctx); err != nil {
			return results.Reading{}, err
		}
	}
	var nodes []results.NodeReading
	for n, endpoint := range s.to.endpoints {
		one, _ := s.members[n].counters.Read()
		if s.Started {
			one.CPU = s.Own[n].CPU()
		}
		nodes = append(nodes, results.NodeReading{Address: endpoint, Role: "member", Reading: one})
	}
	return s.Meter.Reading(began, nodes), nil
}

// metrics reads the counters of a member's process over HTTP. The Meter does not count this request.
func (s *Server) metrics(ctx context.Context, endpoint string, counters *store.RestartCounters) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	scheme := "http://"
	if s.to.tls != nil {
		scheme = "https://"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+endpoint+"/metrics", nil)
	if err != nil {
		return err
	}
	answer, err := s.http.Do(request)
	if err != nil {
		return fmt.Errorf("%w: read the counters of %s: %w", store.ErrUnreachable, endpoint, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("read the counters of %s: %s", endpoint, answer.Status)
	}
	process, got := "", results.Reading{Commands: map[string]int64{}}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		line := metric.FindStringSubmatch(lines.Text())
		if line == nil {
			continue
		}
		name, method, kind := line[1], line[2], line[3]
		value, err := strconv.ParseFloat(line[4], 64)
		switch {
		case err != nil:
			return fmt.Errorf("read the counters of %s: %w", endpoint, err)
		case name == "process_cpu_seconds_total":
			got.CPU = &value
		case name == "process_resident_memory_bytes":
			got.Memory = int64(value)
		case name == "process_start_time_seconds":
			process = fmt.Sprintf("%.2f", value)
		case value > 0 && (kind == "unary") == (name == "grpc_server_handled_total"):
			got.Commands[method] += int64(value) // each message received on a stream is a request
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the counters of %s: %w", endpoint, err)
	}
	counters.Enter(process, got)
	return nil
}

// metric matches the lines of /metrics that Read uses. Its groups are the name, the gRPC method and type, and the
// value.
var metric = regexp.MustCompile(`^(process_cpu_seconds_total|process_resident_memory_bytes|` +
	`process_start_time_seconds|grpc_server_handled_total|grpc_server_msg_received_total)` +
	`(?:\{.*grpc_method="(\w+)".*grpc_type="(\w+)"\})? (\S+)$`)

// Leftovers returns the keys that contain mark. On an etcd that lockbench started it also returns the leases, which are
// sessions that were not ended. A lock has no separate connections, because it uses the client of its instance.
func (s *Server) Leftovers(ctx context.Context, mark, _ string) (left results.Leftovers, err error) {
	err = s.scan(ctx, func(key string) {
		if strings.Contains(key, mark) {
			left.Keys = append(left.Keys, key)
		}
	})
	if err != nil {
		return results.Leftovers{}, err
	}
	if s.Started {
		leases, err := s.client.Leases(ctx)
		if err != nil {
			return results.Leftovers{}, fmt.Errorf("list the leases: %w", err)
		}
		for _, l := range leases.Leases {
			left.Keys = append(left.Keys, fmt.Sprintf(aLease, int64(l.ID)))
		}
	}
	return left, nil
}

// Remove deletes the keys and leases that Leftovers returned.
func (s *Server) Remove(ctx context.Context, keys []string) error {
	for _, key := range keys {
		var lease clientv3.LeaseID
		_, err := fmt.Sscanf(key, aLease, &lease)
		if err == nil {
			_, err = s.client.Revoke(ctx, lease)
		} else {
			_, err = s.client.Delete(ctx, key)
		}
		if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return fmt.Errorf("remove %s: %w", key, err)
		}
	}
	return nil
}

const (
	// aLease is the format in which a lease appears among the leftovers.
	aLease = "the lease %x"
	// page is the number of keys per request.
	page = 1000
	// ours is the prefix of all keys of lockbench, except the keys of locks that put another prefix before it.
	ours = "lockbench"
)

// scan visits all keys, because etcd can search only by prefix. If the user lacks the right to all keys, scan visits
// only the keys that begin with ours.
func (s *Server) scan(ctx context.Context, visit func(key string)) error {
	err := s.scanRange(ctx, "\x00", "\x00", visit) // all keys
	if s.Unauthorised(s.Refused(err)) {
		err = s.scanRange(ctx, ours, clientv3.GetPrefixRangeEnd(ours), visit)
	}
	return err
}

func (s *Server) scanRange(ctx context.Context, from, end string, visit func(key string)) error {
	for {
		upTo, some := clientv3.WithRange(end), clientv3.WithLimit(page)
		answer, err := s.client.Get(ctx, from, upTo, some, clientv3.WithKeysOnly())
		if err != nil {
			return fmt.Errorf("list the keys: %w", err)
		}
		for _, kv := range answer.Kvs {
			visit(string(kv.Key))
		}
		if !answer.More || len(answer.Kvs) == 0 {
			return nil
		}
		from = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
	}
}
