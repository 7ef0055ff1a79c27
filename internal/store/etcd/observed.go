package etcd

import (
	"context"
	"maps"
	"path"
	"sync"

	"google.golang.org/grpc"

	"github.com/lockbench/lockbench/internal/intercept"
	"github.com/lockbench/lockbench/results"
)

// observed counts the requests of our own observation.
type observed struct {
	traffic intercept.Traffic

	mu       sync.Mutex
	commands map[string]int64
}

func (o *observed) count(method string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.commands == nil {
		o.commands = map[string]int64{}
	}
	o.commands[path.Base(method)]++
}

// unary counts a call.
func (o *observed) unary(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	o.count(method)
	return invoke(ctx, method, request, reply, conn, options...)
}

// stream counts each message of a stream.
func (o *observed) stream(ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, description, conn, method, options...)
	if err != nil {
		return nil, err
	}
	return observedStream{stream, o, method}, nil
}

type observedStream struct {
	grpc.ClientStream
	observed *observed
	method   string
}

func (s observedStream) SendMsg(message any) error {
	s.observed.count(s.method)
	return s.ClientStream.SendMsg(message)
}

func (o *observed) counts() results.ObserverCounts {
	o.mu.Lock()
	defer o.mu.Unlock()
	return results.ObserverCounts{
		Commands:   maps.Clone(o.commands),
		RoundTrips: o.traffic.Requests(), BytesOut: o.traffic.Written(), BytesIn: o.traffic.Read(),
	}
}
