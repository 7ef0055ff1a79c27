// Command tracing prints the spans of a lock's commands. redisotel's hook on the service's client creates them, each as
// a child of the caller's span.
//
//	REDIS=127.0.0.1:6379 go run .
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/lock"
	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func main() {
	if err := run(context.Background(), cmp.Or(os.Getenv("REDIS"), "127.0.0.1:6379"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tracing:", err)
		os.Exit(1)
	}
}

// run ships an order under a lock and prints the tree of spans.
func run(ctx context.Context, address string, out io.Writer) error {
	spans := tracetest.NewInMemoryExporter() // a service exports to its collector
	provider := trace.NewTracerProvider(trace.WithSyncer(spans))
	client := redis.NewClient(&redis.Options{Addr: address, ContextTimeoutEnabled: true})
	defer client.Close()
	if err := redisotel.InstrumentTracing(client, redisotel.WithTracerProvider(provider)); err != nil {
		return fmt.Errorf("instrument the client: %w", err)
	}
	locker, err := handoff.New(client)
	if err != nil {
		return err
	}
	defer locker.Close()
	if err := ship(ctx, locker, provider); err != nil {
		return fmt.Errorf("ship the order: %w", err)
	}
	tree(out, spans.GetSpans())
	return nil
}

// ship does the work of a traced request.
func ship(ctx context.Context, locker *lock.FencedLocker, provider *trace.TracerProvider) error {
	ctx, span := provider.Tracer("shop").Start(ctx, "ship order 17")
	defer span.End()
	return locker.WithLock(ctx, "order:17", func(context.Context) error { return nil })
}

// tree prints each span below its parent. Spans with the same parent are in the order in which they started.
func tree(out io.Writer, spans tracetest.SpanStubs) {
	slices.SortFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	var below func(parent tracetest.SpanStub, depth int)
	below = func(parent tracetest.SpanStub, depth int) {
		for _, span := range spans {
			if span.Parent.SpanID() == parent.SpanContext.SpanID() {
				fmt.Fprintln(out, strings.Repeat("  ", depth)+span.Name)
				below(span, depth+1)
			}
		}
	}
	below(tracetest.SpanStub{}, 0)
}
