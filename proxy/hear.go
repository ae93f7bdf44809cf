package proxy

import "net"

// hear has the meter take down what the answer says, where the conversation is
// known again by that.
func (x *exchange) hear() {
	if reply := x.at.Reply(); reply != nil {
		x.meter.OnEvent, x.meter.OnAnswer = reply.Event, reply.Answer
	}
}

// caller tells apart who calls: by the client's own key, whichever of weir's is
// sent in its place, and by address.
func (x *exchange) caller() string {
	host, _, _ := net.SplitHostPort(x.r.RemoteAddr)
	key := x.c.KeyFingerprint
	if x.key != nil && x.p.Fingerprint != nil {
		key = ""
		if own := keyOf(x.r); own != "" {
			key = x.p.Fingerprint(own)
		}
	}
	return key + " " + host
}
