package store

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

// Speaker is a Store that can tell its servers by their protocol.
type Speaker interface {
	// Title is the store's name as its makers write it.
	Title() string
	// Speaks says whether one of its servers answers at host:port, be it that it lets
	// nobody in. What it sends must do no harm to any other server.
	Speaks(ctx context.Context, addr string) bool
}

// Needer is a Store that says what its servers must allow.
type Needer interface {
	// Needs are what a user has to be allowed, a line each, for somebody who has the means
	// of the store at hand. keys begins all names of lockbench's own.
	Needs(keys string) []string
}

// strangerLimit is how long a server may take to show by its protocol what it is.
const strangerLimit = time.Second

// Stranger is the error of an address of store mine at which another store answers; nil if
// none does. It wraps ErrConfig. It works with a context that has passed its deadline.
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
		go func() { // ends within the limit; all are waited for
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

// Knock sends a greeting to host:port and returns the beginning of the answer; "" is none.
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
	n, _ := conn.Read(answer) // a server may hang up behind its answer
	return string(answer[:n])
}
