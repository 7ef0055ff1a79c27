package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lockbench/lockbench/internal/store"
)

// dialer opens connections.
func dialer(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

const (
	// wordLimit limits the time of an answer to a four-letter word.
	wordLimit = 2 * time.Second
	// longestAnswer is more than any answer has.
	longestAnswer = 4 << 20
)

// ask sends one of ZooKeeper's four-letter words on its own connection.
func ask(ctx context.Context, dial store.Dialer, addr, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, wordLimit)
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
	answer, err := io.ReadAll(io.LimitReader(conn, longestAnswer))
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if len(answer) > 0 { // a server may close the connection before it has read the whole line
		err = nil
	}
	return string(answer), err
}

// status is what a server reports about itself.
type status struct {
	version, mode string // standalone, leader, follower, observer, read-only; "" while it does not serve
	connections   int64
}

func (s status) serves() bool { return s.mode != "" && s.mode != "read-only" }

var (
	// errNoQuorum says that a member of an ensemble has no leader.
	errNoQuorum = errors.New("the server does not serve: its ensemble has no quorum, or it has just started")
	// errStranger says that another kind of server is at the address.
	errStranger = errors.New("what answers there is no ZooKeeper")
	errReadOnly = errors.New("the server has lost its ensemble and only reads (read-only mode)")
)

var (
	versionLine     = regexp.MustCompile(`(?m)^Zookeeper version: v?(\d+(?:\.\d+)*)`)
	modeLine        = regexp.MustCompile(`(?m)^Mode: (\S+)`)
	connectionsLine = regexp.MustCompile(`(?m)^Connections: (\d+)`)
)

// look asks a server what it is.
func look(ctx context.Context, dial store.Dialer, addr string) (status, error) {
	answer, err := ask(ctx, dial, addr, "srvr")
	switch {
	case errors.Is(err, syscall.ECONNRESET), err == nil && answer == "":
		return status{}, fmt.Errorf("%w: it hung up without a word", errStranger)
	case err != nil:
		return status{}, err
	case strings.Contains(answer, "not currently serving"):
		return status{}, errNoQuorum
	case strings.Contains(answer, "not executed because it is not in the whitelist"):
		return status{mode: "unknown"}, nil
	}
	version, mode := versionLine.FindStringSubmatch(answer), modeLine.FindStringSubmatch(answer)
	if version == nil || mode == nil {
		return status{}, fmt.Errorf("%w: it said %.60q", errStranger, answer)
	}
	s := status{version: version[1], mode: mode[1]}
	if s.mode == "read-only" {
		return s, errReadOnly
	}
	if n := connectionsLine.FindStringSubmatch(answer); n != nil {
		s.connections, _ = strconv.ParseInt(n[1], 10, 64)
	}
	return s, nil
}

// fields parses lines of a name and a number, as in the answer to mntr.
func fields(answer string) map[string]int64 {
	all := map[string]int64{}
	for line := range strings.Lines(answer) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			name, value, _ = strings.Cut(strings.TrimSpace(line), "=") // as in the answer to conf
		}
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			all[name] = n
		}
	}
	return all
}
