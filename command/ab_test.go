package command

import (
	"slices"
	"testing"
)

func TestOrderIsBalancedAndShuffled(t *testing.T) {
	for _, pairs := range []int{1, 2, 7, 12, 100} {
		first := 0
		for _, headFirst := range order(pairs, 1) {
			if headFirst {
				first++
			}
		}
		if first != pairs/2 {
			t.Errorf("the head is first in %d of %d pairs", first, pairs)
		}
	}
	if !slices.Equal(order(100, 1), order(100, 1)) || slices.Equal(order(100, 1), order(100, 2)) {
		t.Error("the order is not the seed's")
	}
}
