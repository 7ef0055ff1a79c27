package results

// enoughAcquisitions a client, on average, make Jain's index say more than chance.
const enoughAcquisitions = 20

// Jain is Jain's index, see Fairness, of so many clients' turns, by their sum and
// the sum of their squares.
func Jain(clients, sum, squares float64) *float64 {
	if clients == 0 || sum < enoughAcquisitions*clients {
		return nil
	}
	return new(sum * sum / (clients * squares))
}
