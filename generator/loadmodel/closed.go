package loadmodel

// AtConcurrency is the model as a closed loop of so many users, in the time that
// it had.
func (m *Model) AtConcurrency(users int) *Model {
	closed := *m
	closed.Concurrency, closed.Duration = users, m.Length()
	closed.TargetQPS, closed.RampUp, closed.Phases, closed.Rates = 0, 0, nil, nil
	return &closed
}
