package etcd

import (
	"context"
	"path"

	"google.golang.org/grpc"

	"github.com/lockbench/lockbench/internal/store"
)

// observed counts the requests of our own observation.
type observed struct{ *store.Meter }

// unary counts a call.
func (o observed) unary(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	o.Count(path.Base(method))
	return invoke(ctx, method, request, reply, conn, options...)
}

// stream counts each message of a stream.
func (o observed) stream(ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, description, conn, method, options...)
	if err != nil {
		return nil, err
	}
	return observedStream{stream, o, path.Base(method)}, nil
}

type observedStream struct {
	grpc.ClientStream
	observed observed
	method   string
}

func (s observedStream) SendMsg(message any) error {
	s.observed.Count(s.method)
	return s.ClientStream.SendMsg(message)
}
