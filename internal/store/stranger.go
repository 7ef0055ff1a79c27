package store

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"
)

// Speaker is a Store that can recognise its servers by their protocol.
type Speaker interface {
	// Title is the store's official name.
	Title() string
	// Speaks says whether one of its servers answers at host:port, even if it refuses access. What
	// it sends must not harm any other server.
	Speaks(ctx context.Context, addr string) bool
}

// Needer is a Store that knows which rights a user needs on its servers.
type Needer interface {
	// Needs returns the commands that grant these rights, one per line. keys is the prefix of all
	// names of lockbench.
	Needs(keys string) []string
}

// strangerLimit limits the time in which a server must show its protocol.
const strangerLimit = time.Second

// Stranger returns an error that wraps ErrConfig if another store than mine answers at the
// address; else nil. It also works with a context whose deadline has passed.
func Stranger(ctx context.Context, addr, mine string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), strangerLimit)
	defer cancel()
	title := mine
	var others []Speaker
	for _, name := range Names() {
		kind, err := Lookup(name)
		speaker, ok := kind.(Speaker)
		switch {
		case err != nil || !ok:
		case name == mine:
			title = speaker.Title()
		default:
			others = append(others, speaker)
		}
	}
	speaks := make(chan string, len(others))
	for _, other := range others {
		go func() { // ends within the limit; the loop below waits for all
			if other.Speaks(ctx, addr) {
				cancel()
				speaks <- other.Title()
				return
			}
			speaks <- ""
		}()
	}
	found := ""
	for range others {
		if other := <-speaks; other != "" {
			found = other
		}
	}
	if found == "" {
		return nil
	}
	return fmt.Errorf("%w: --redis: at %s there is %s, and no %s", ErrConfig, addr, article(found), title)
}

func article(title string) string {
	if strings.ContainsRune("aeiouAEIO", rune(title[0])) {
		return "an " + title
	}
	return "a " + title
}

// Knock sends a greeting to host:port and returns the beginning of the answer; "" if there is none.
func Knock(ctx context.Context, addr, greeting string) string {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return ""
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write([]byte(greeting)); err != nil {
		return ""
	}
	answer := make([]byte, 1024)
	n, _ := conn.Read(answer) // a server may close the connection after its answer
	return string(answer[:n])
}

// SpeaksTLS says whether a server answers a TLS handshake at host:port, with any certificate.
func SpeaksTLS(ctx context.Context, addr string) bool {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}} //nolint:gosec // nothing is sent
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return strings.Contains(err.Error(), "remote error: tls:") // it requires a client certificate
	}
	_ = conn.Close()
	return true
}
