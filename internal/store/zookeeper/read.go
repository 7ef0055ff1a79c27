package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

// counters adds up the counters of one server over its restarts. Each restart resets the counters in the server.
type counters struct {
	store.RestartCounters
	mu               sync.Mutex
	starts, received int64
}

// Read requests the counters of all servers at the same time and adds them up. If a server is down, Read uses the
// server's last known values.
func (s *Server) Read(ctx context.Context) (results.Reading, error) {
	began := time.Now()
	all, err := s.readAllStatus(ctx)
	if err != nil {
		return results.Reading{}, fmt.Errorf("read the counters: %w", err)
	}
	nodes := make([]results.NodeReading, len(all))
	for i, addr := range s.node.Servers {
		nodes[i] = results.NodeReading{Address: addr, Role: all[i].mode, Reading: s.counters[i].enter(all[i])}
		if s.Started {
			nodes[i].Reading.CPU = s.Own[i].CPU()
		}
	}
	return s.Meter.Reading(began, nodes), nil
}

// packets is the name under which a reading counts the packets that a server received: requests, heartbeats and
// commands such as srvr.
const packets = "packet"

// enter adds the counts of a server and returns the sums. If the server did not reply, enter keeps its last counts.
func (c *counters) enter(now status) results.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.received > 0 {
		if now.received < c.received {
			c.starts++
		}
		c.received = now.received
		c.Enter(fmt.Sprint(c.starts), results.Reading{Commands: map[string]int64{packets: now.received}})
	}
	r, _ := c.RestartCounters.Read()
	r.Clients = max(0, now.connections-1) // one is the connection of this request
	return r
}

// dialer opens connections without counting their traffic.
var dialer store.Dialer = new(net.Dialer).DialContext

// ask sends one of ZooKeeper's four-letter words on a new connection, and returns the reply.
func ask(ctx context.Context, dial store.Dialer, addr, word string) (string, error) {
	const limit, longest = 2 * time.Second, 4 << 20
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := dial(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write([]byte(word + "\n")); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, longest))
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if len(answer) > 0 { // a server may close the connection before it has read the whole request
		err = nil
	}
	return string(answer), err
}

// status contains the values of a server's reply to the command srvr.
type status struct {
	version, mode         string // standalone, leader, follower, observer; unknown if it does not permit srvr
	connections, received int64
}

// countedStatus requests a server's status, and counts the request as a packet of lockbench's own observation.
func (s *Server) countedStatus(ctx context.Context, addr string) (status, error) {
	s.Meter.Count(packets)
	return readStatus(ctx, s.observe, addr)
}

// readStatus requests a server's status. It returns an error if the server does not serve requests.
func readStatus(ctx context.Context, dial store.Dialer, addr string) (status, error) {
	answer, err := ask(ctx, dial, addr, "srvr")
	switch {
	case err != nil:
		return status{}, err
	case strings.Contains(answer, "not currently serving"):
		return status{}, errors.New("the server does not serve requests: its ensemble has no quorum, or it has just started")
	case strings.Contains(answer, "is not in the whitelist"):
		return status{mode: "unknown"}, nil
	}
	told := fields(answer)
	version, _, _ := strings.Cut(strings.TrimPrefix(told["Zookeeper version"], "v"), "-")
	s := status{
		strings.TrimSuffix(version, ","), told["Mode"], number(told["Connections"]), number(told["Received"]),
	}
	if s.version == "" || s.mode == "" || s.mode == "read-only" {
		return status{}, fmt.Errorf("not a ZooKeeper server that accepts writes: it replied to srvr with %.60q", answer)
	}
	return s, nil
}

// fields parses lines of a name and a value, as in the replies to srvr, mntr and conf.
func fields(answer string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(answer) {
		if at := strings.IndexAny(line, ":\t="); at > 0 {
			all[line[:at]] = strings.TrimSpace(line[at+1:])
		}
	}
	return all
}

// number parses a decimal integer; it returns 0 for any other text.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
