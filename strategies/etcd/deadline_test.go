package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A deadline that etcd's clock has seen pass first is the caller's all the same, and an error
// of etcd's own is not.
func TestEtcdSeesTheDeadlineFirst(t *testing.T) {
	for _, told := range []error{
		status.Error(codes.DeadlineExceeded, "context deadline exceeded"), status.Error(codes.Unknown, "context deadline exceeded"),
		rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost,
	} {
		theirs := fmt.Errorf("put: %w", told)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := because(ctx, theirs); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
			t.Errorf("error %v, while the context's is %v", err, ctx.Err())
		}
		if err := because(t.Context(), theirs); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a deadline the error is %v", err)
		}
	}
	later, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for _, own := range []error{status.Error(codes.Unavailable, "no leader"), status.Error(codes.Unknown, "auth: token is gone")} {
		if err := because(later, own); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		soon, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		if err := because(soon, own); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v before the deadline", err)
		}
		cancel()
	}
}
