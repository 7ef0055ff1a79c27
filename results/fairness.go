package results

// enoughAcquisitions is the mean number per client from which on Jain's index is not mere chance.
const enoughAcquisitions = 20

// Jain returns Jain's index, see Fairness, of the clients' acquisitions, from their sum and the
// sum of their squares; nil if there are too few.
func Jain(clients, sum, squares float64) *float64 {
	if clients == 0 || sum < enoughAcquisitions*clients {
		return nil
	}
	return new(sum * sum / (clients * squares))
}
