package selfcheck

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/engine"
)

// anchor is an Observer that asks the server for its TIME at the beginning and at the end of every hold. So
// the recorded holds can be compared with a clock outside of this process.
type anchor struct {
	records
	ctx    context.Context
	server redis.UniversalClient
	began  []asked // by client
	ended  []asked

	mu       sync.Mutex
	brackets []bracket
}

// asked is one request for the time.
type asked struct {
	server int64 // the answer, ns since 1970
	trip   int64 // ns until the answer arrived
	failed bool
}

// bracket is a hold as recorded and as the server saw it.
type bracket struct {
	recorded int64 // ns
	inside   int64 // ns on the server's clock between the two answers
	trips    int64 // ns, sum of both requests
}

func newAnchor(ctx context.Context, server redis.UniversalClient, clients int) *anchor {
	return &anchor{ctx: ctx, server: server, began: make([]asked, clients), ended: make([]asked, clients)}
}

// Holding asks at the beginning.
func (a *anchor) Holding(client int) { a.began[client] = a.ask() }

// Releasing asks at the end.
func (a *anchor) Releasing(client int) { a.ended[client] = a.ask() }

func (a *anchor) ask() asked {
	before := time.Now()
	now, err := a.server.Time(a.ctx).Result()
	return asked{server: now.UnixNano(), trip: int64(time.Since(before)), failed: err != nil}
}

// Acquired keeps the record and the server's times.
func (a *anchor) Acquired(one engine.Acquisition) {
	a.records.Acquired(one)
	from, to := a.began[one.Client], a.ended[one.Client]
	if from.failed || to.failed {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.brackets = append(a.brackets, bracket{one.Released - one.Granted, to.server - from.server, from.trip + to.trip})
}

// anchored compares many holds with the server's clock.
type anchored struct {
	compared, of int
	percent      float64 // by which the recorded holds are longer than the server's
}

// compare compares the recorded holds with the server's clock. The server reads its clock at some point in
// each request's trip. The two trips are alike, so on average half of both is missing:
//
//	hold ≈ TIME₂ − TIME₁ + (trip₁ + trip₂) ÷ 2
//
// as in NTP (RFC 5905 §8). As there, only the shorter half of the trips is used: a long trip may have been
// long in one direction only.
func compare(brackets []bracket) anchored {
	result := anchored{of: len(brackets), percent: math.NaN()}
	if len(brackets) == 0 {
		return result
	}
	trips := make([]int64, len(brackets))
	for i, b := range brackets {
		trips[i] = b.trips
	}
	slices.Sort(trips)
	most := trips[len(trips)/2]
	var recorded, seen float64
	for _, b := range brackets {
		if b.trips <= most {
			result.compared++
			recorded += float64(b.recorded)
			seen += float64(b.inside) + float64(b.trips)/2
		}
	}
	result.percent = (recorded/seen - 1) * 100
	return result
}
