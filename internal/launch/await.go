package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Starting is a started server that may not answer yet.
type Starting interface {
	Addr() string
	Log(ctx context.Context) string
	Ended(ctx context.Context) bool
}

// StartTimeout bounds a start on a very slow machine; two seconds are usual.
const StartTimeout = time.Minute

// Await calls ask until it succeeds, for at most StartTimeout. If the server ends instead, the error
// is what said extracts from its log.
func Await(ctx context.Context, s Starting, said func(log string) string, ask func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx)
		switch {
		case s.Ended(ctx): // any answer came from another server
			return errors.New(said(s.Log(ctx)))
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("it is not ready: %w: %w (%s)", context.Cause(ctx), err, said(s.Log(context.WithoutCancel(ctx))))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// LastLine returns the last line of a log.
func LastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return "it said nothing"
}
