package call

// SpanEvent is a moment within a call's span.
type SpanEvent struct {
	Name string
	At   Instant
}

// SpanEvents are the moments at which the parts of a call begin, in the order
// of the account, so that a waterfall shows them: waiting in the queue, finding
// a connection, sending, waiting for the model, generating, and what came after
// the last token. What was not reached is not among them.
func (c *Call) SpanEvents() []SpanEvent {
	events := make([]SpanEvent, 0, 8)
	for _, e := range []SpanEvent{
		{"weir.queue", c.Body}, {"weir.connect", c.Admitted}, {"weir.connect_again", c.Again}, {"weir.send", c.Connected}, {"weir.wait", c.sentCut()},
		{"weir.first_token", c.FirstToken.Received}, {"weir.last_token", c.LastToken.Received},
	} {
		if e.At.Reached() {
			events = append(events, e)
		}
	}
	return events
}
