package line

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// buffer is large enough for what arrives at once from a busy lock.
const buffer = 32 << 10

// dial opens a connection as go-redis would by the client's options, TLS and
// sentinels included, speaks RESP3 on it and subscribes.
func (l *Line) dial() (net.Conn, *bufio.Reader, error) {
	client, err := l.client(l.ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("find the server: %w", err)
	}
	options := client.Options()
	ctx, cancel := context.WithTimeout(l.ctx, cmp.Or(options.DialTimeout, 5*time.Second))
	defer cancel()
	conn, err := options.Dialer(ctx, options.Network, options.Addr)
	if err != nil {
		return nil, nil, fmt.Errorf("dial %s: %w", options.Addr, err)
	}
	// Close ends the handshake too.
	ended := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	reader := bufio.NewReaderSize(conn, buffer)
	err = l.greet(ctx, conn, reader, options)
	if err == nil && !ended() {
		err = ctx.Err()
	}
	if err != nil {
		ended()
		_ = conn.Close()
		return nil, nil, fmt.Errorf("greet %s: %w", options.Addr, err)
	}
	return conn, reader, nil
}

// greet logs in and subscribes.
func (l *Line) greet(ctx context.Context, conn net.Conn, r *bufio.Reader, options *redis.Options) error {
	user, password, err := credentials(ctx, options)
	if err != nil {
		return err
	}
	hello := []string{"HELLO", "3"}
	if password != "" {
		hello = append(hello, "AUTH", cmp.Or(user, "default"), password)
	}
	if options.ClientName != "" {
		hello = append(hello, "SETNAME", options.ClientName)
	}
	commands := [][]string{hello}
	if options.DB != 0 {
		commands = append(commands, []string{"SELECT", strconv.Itoa(options.DB)})
	}
	commands = append(commands, tracking)
	if len(l.subscribe) > 0 { // after it messages come
		commands = append(commands, l.subscribe)
	}
	for _, command := range commands {
		err := ask(conn, r, command)
		if _, refused := errors.AsType[Error](err); refused && &command[0] == &tracking[0] {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", command[0], err)
		}
	}
	return nil
}

// tracking tracks no key, but has the server tell when it has flushed all. Where that is
// not allowed it goes without.
var tracking = []string{"CLIENT", "TRACKING", "ON", "OPTIN"}

// ask sends a command and returns what is wrong with its answer.
func ask(conn net.Conn, r *bufio.Reader, command []string) error {
	if _, err := conn.Write(write(nil, command)); err != nil {
		return err
	}
	for {
		reply, err := read(r, true)
		if err != nil {
			return err
		}
		if !reply.flushed() {
			return reply.Err
		}
	}
}

// credentials are found where go-redis would look for them.
func credentials(ctx context.Context, options *redis.Options) (user, password string, err error) {
	switch {
	case options.CredentialsProviderContext != nil:
		user, password, err = options.CredentialsProviderContext(ctx)
	case options.CredentialsProvider != nil:
		user, password = options.CredentialsProvider()
	default:
		user, password = options.Username, options.Password
	}
	if err != nil {
		return "", "", fmt.Errorf("ask for the credentials: %w", err)
	}
	return user, password, nil
}
