package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
)

// MonitorRights returns the rights of a user who reads MONITOR and watches its output buffer, as rules of ACL SETUSER.
func MonitorRights() []string {
	return []string{"+monitor", "+client|id", "+client|list", "+client|kill"}
}

// errOneNode lists the forms of address that OpenMonitor accepts. It does not quote the given address, because any part
// of it may be a password.
var errOneNode = errors.New("lockbench reads MONITOR from one node over TCP, because MONITOR shows the same " +
	"address for all clients of a Unix socket: give redis[s]://[user:password@]host:port; for a cluster give " +
	"the address of one node, whose slots are then observed, and for Sentinels the address of the primary; " +
	"percent-encode special characters of a password")

// OneNode returns an error if the address does not name a single node or the certificates are not usable.
func (o Options) OneNode() error {
	if o.Started() {
		return errOneNode
	}
	at, found, err := o.addresses()
	switch {
	case errors.Is(err, errAddress), found != nil, len(at) > 1, errors.Is(err, errSentinel),
		len(at) == 1 && strings.HasPrefix(at[0].Addrs[0], "/"): // a socket
		return errOneNode
	}
	return err
}

// Monitor reads the MONITOR stream of a node. Redis does not limit the output buffer of a normal client, so a slow
// reader makes the server's memory grow. Therefore a second connection, the guard, watches the output buffer of the
// MONITOR connection and can end MONITOR.
type Monitor struct {
	node   *node
	guard  *redis.Conn
	client *redis.Client // its only connection, stream, carries MONITOR
	held   *redis.Conn   // keeps stream out of the client's pool
	stream net.Conn
	in     *bufio.Reader
	id     int64  // CLIENT ID of stream
	from   string // address of the guard, as MONITOR shows it
	old    bool   // CLIENT LIST has no ID option, as before Redis 6.2
}

// monitorBuffer is the size of the buffer between the socket and the reader, in bytes.
const monitorBuffer = 64 << 10

// OpenMonitor connects to the single node that the options describe, and begins MONITOR. The error wraps ErrUnreachable
// or ErrConfig, and names all rights that the user lacks. The caller closes the Monitor.
func OpenMonitor(ctx context.Context, options Options) (*Monitor, error) {
	if err := options.OneNode(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	at, _, err := options.addresses()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	m := &Monitor{node: &node{options: *at[0]}}
	m.node.options.DB = 0 // MONITOR shows all databases
	if err := m.open(ctx, options.RunID); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *Monitor) open(ctx context.Context, runID string) error {
	if err := m.node.open(ctx, &store.Meter{}, runID, make(chan struct{}, dialsAtOnce)); err != nil {
		return err
	}
	single, ok := m.node.observer.(*redis.Client)
	if !ok {
		return fmt.Errorf("%w: %w", ErrConfig, errOneNode)
	}
	ctx, cancel := context.WithTimeout(ctx, contactTimeout)
	defer cancel()
	m.guard = single.Conn()
	how := *single.Options()
	dial := how.Dialer
	how.PoolSize, how.MinIdleConns = 1, 0
	how.Protocol = 2 // in RESP2 the lines of MONITOR are simple strings
	how.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		m.stream = conn
		return conn, err
	}
	m.client = redis.NewClient(&how)
	m.held = m.client.EphemeralConn()
	return m.begin(ctx)
}

// begin identifies both connections, and begins MONITOR unless the user lacks a right.
func (m *Monitor) begin(ctx context.Context) error {
	var missing []string
	var problems []error
	try := func(right string, err error) {
		switch code := Refused(err); {
		case code == noPermission:
			missing = append(missing, right)
		case code == unknown:
			problems = append(problems, fmt.Errorf("%w: the server at %s does not know %s: %w", ErrConfig, m.node.addr(),
				strings.ToUpper(strings.ReplaceAll(right[1:], "|", " ")), err))
		case err != nil:
			problems = append(problems, fmt.Errorf("%w: %s: %w", sentinel(err), m.node.addr(), err))
		}
	}
	own, err := m.guard.ClientID(ctx).Result()
	if m.id, _ = m.held.ClientID(ctx).Result(); m.stream == nil && err == nil { // go-redis has not dialled it
		err = m.held.Ping(ctx).Err()
	}
	try("+client|id", err)
	if about, err := m.about(ctx, own); err == nil {
		m.from = about["addr"]
	} else {
		try("+client|list", err)
	}
	if m.from == "" && len(missing)+len(problems) == 0 {
		problems = append(problems, fmt.Errorf("%w: CLIENT LIST of %s does not list lockbench's own connection: %s",
			ErrConfig, m.node.addr(), behind))
	}
	// This command only tests the right, because no client has the address "none".
	if err := m.guard.Do(ctx, "client", "kill", "none").Err(); Refused(err) != "" {
		try("+client|kill", err)
	}
	if m.stream != nil {
		try("+monitor", m.monitor(ctx))
	}
	missing = slices.DeleteFunc(MonitorRights(), func(right string) bool { return !slices.Contains(missing, right) })
	if len(missing) > 0 {
		user := m.node.options.Username
		if user == "" {
			user = "default"
		}
		problems = append(problems, fmt.Errorf("%w: the user lacks the rights %s to read MONITOR and to watch its output "+
			"buffer\nnext: have an administrator run ACL SETUSER %s %[2]s", ErrConfig, strings.Join(missing, " "), user))
	}
	return errors.Join(problems...)
}

// monitor sends MONITOR and reads the reply. An error reply becomes a redis.Error, so that begin can recognise a
// missing right.
func (m *Monitor) monitor(ctx context.Context) error {
	deadline, _ := ctx.Deadline()
	if err := m.stream.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := io.WriteString(m.stream, "*1\r\n$7\r\nMONITOR\r\n"); err != nil {
		return err
	}
	m.in = bufio.NewReaderSize(m.stream, monitorBuffer)
	answer, err := m.in.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("read the reply to MONITOR: %w", err)
	}
	switch text := strings.TrimSpace(string(answer)); {
	case strings.HasPrefix(text, "-"):
		return reply(untrusted.Printable(text[1:]))
	case text != "+OK":
		return fmt.Errorf("%w: %s replied to MONITOR with %s", ErrConfig, m.node.addr(), untrusted.Printable(text))
	}
	return m.stream.SetDeadline(time.Time{}) // go-redis had set a deadline
}

// reply is an error reply of the server to a command that lockbench has sent without go-redis.
type reply string

func (r reply) Error() string { return string(r) }

// RedisError marks reply as a redis.Error.
func (reply) RedisError() {}

// about returns the entry of a connection in CLIENT LIST; nil if the connection has ended.
func (m *Monitor) about(ctx context.Context, id int64) (map[string]string, error) {
	words := []any{"client", "list", "id", id}
	if m.old {
		words = words[:2]
	}
	list, err := m.guard.Do(ctx, words...).Text()
	if err != nil && refused(err) && Refused(err) == "" && !m.old { // Redis before 6.2
		m.old = true
		return m.about(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	for client := range replies.Clients(list) {
		if client["id"] == fmt.Sprint(id) {
			return client, nil
		}
	}
	return nil, nil
}

// Guard returns the address of the guard's connection as MONITOR shows it, so that a reader can recognise the guard's
// commands.
func (m *Monitor) Guard() string { return m.from }

// Read reads the MONITOR stream. Stop ends it.
func (m *Monitor) Read(to []byte) (int, error) { return m.in.Read(to) }

// ErrGone reports that the server has closed the connection of MONITOR.
var ErrGone = errors.New("the server closed the MONITOR connection")

// Held returns the number of bytes that the server holds for the connection of MONITOR: the size of the output buffer,
// or all memory of the connection if the server reports that.
//
// Held sends a PING before CLIENT LIST, because MONITOR shows PING but not CLIENT LIST. So the stream shows the
// server's clock even if no other client sends commands. MONITOR does not show the PING if the user lacks the right
// to it.
func (m *Monitor) Held(ctx context.Context) (int64, error) {
	_ = m.guard.Ping(ctx).Err() // CLIENT LIST below reports the same error
	about, err := m.about(ctx, m.id)
	if err != nil {
		return 0, fmt.Errorf("read the size of MONITOR's output buffer: %w", err)
	}
	if about == nil {
		return 0, ErrGone
	}
	fields := replies.Info(about)
	return max(value(fields.Integer("omem")), value(fields.Integer("tot-mem"))), nil
}

// Kill makes the server close the connection of MONITOR and free its buffers.
func (m *Monitor) Kill(ctx context.Context) error {
	if err := m.guard.Do(ctx, "client", "kill", "id", m.id).Err(); err != nil {
		return fmt.Errorf("end MONITOR: %w", err)
	}
	return nil
}

// Mark makes the guard send ECHO. In the stream, this ECHO follows all commands that the server has executed so far.
func (m *Monitor) Mark(ctx context.Context) error {
	if err := m.guard.Echo(ctx, "mark").Err(); err != nil {
		return fmt.Errorf("mark the end of the stream: %w", err)
	}
	return nil
}

// Stop ends the stream, so that Read returns an error. It may be called during Read.
func (m *Monitor) Stop() { _ = m.stream.Close() }

// Close closes both connections. It must not be called during Read.
func (m *Monitor) Close() error {
	if m.stream != nil {
		m.Stop()
	}
	for _, conn := range []*redis.Conn{m.held, m.guard} {
		if conn != nil {
			_ = conn.Close()
		}
	}
	if m.client != nil {
		_ = m.client.Close() // its connection is closed already
	}
	return disconnect([]*node{m.node})
}
