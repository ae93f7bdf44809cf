package call

import (
	"regexp"
	"strings"
)

// unreachable explains why no connection answered, by the words of the error:
// a call that comes from the store has nothing else.
func (c *Call) unreachable() advice { return c.noConnection(c.said()) }

func (c *Call) noConnection(said string) advice {
	where := c.endpoint()
	switch {
	case says(said, "proxyconnect", "socks connect"):
		return advice{"The proxy on the way to " + where + " cannot be used.",
			"Correct --upstream-proxy, or leave it out."}
	case says(said, "connection_refused", "connection refused", "actively refused"):
		return advice{"Nothing listens at " + where + ": the connection was refused.",
			"Start the endpoint, or correct the host and port of --upstream."}
	case says(said, "dns_error", "no such host", "server misbehaving", "name resolution"):
		return c.noName(said, where)
	case says(said, "tls", "x509", "certificate", "http response to https client", "malformed http response"):
		return noTrust(said, where)
	case says(said, "network is unreachable", "no route to host"):
		return advice{"There is no way to " + where + " on this network.",
			"See whether the machine is online, and whether a VPN or --upstream-proxy is needed."}
	case says(said, "timeout", "deadline exceeded", "timed out"):
		return advice{where + " did not take the connection in time.",
			"See whether a firewall drops it, and whether --upstream-proxy or a VPN is needed."}
	case says(said, "connection_reset", "connection reset", "broken pipe", "eof"):
		return advice{where + " closed the connection before it answered.",
			"See the endpoint's own log, and whether something on the way filters connections."}
	}
	return advice{where + " cannot be reached.", "Correct --upstream, or see whether the endpoint runs."}
}

func (c *Call) noName(said, where string) advice {
	if says(said, "no such host") {
		return advice{"There is no host named " + hostOf(where) + ".", "Correct the name in --upstream."}
	}
	return advice{"The name " + hostOf(where) + " could not be looked up.",
		"See whether the machine is online and its DNS works."}
}

func hostOf(where string) string {
	host, _, _ := strings.Cut(where, ":")
	return host
}

// certifiedFor finds the names in the error of a certificate for another host.
var certifiedFor = regexp.MustCompile(`certificate is valid for ([^\n]{1,120}?), not `)

// noTrust explains a TLS handshake that failed.
func noTrust(said, where string) advice {
	switch {
	case says(said, "http response to https client", "first record does not look like a tls handshake"):
		return advice{where + " does not speak TLS at that port.", "Use http:// in --upstream, or the port for TLS."}
	case says(said, "malformed http response"):
		return advice{where + " speaks TLS at that port, and was asked without it.", "Use https:// in --upstream."}
	case says(said, "unknown authority", "certificate is not trusted", "unable to get local issuer", "self-signed", "self signed"):
		return advice{"The certificate of " + where + " is signed by an authority that this machine does not know.",
			"Name its CA with --ca-file; a company's proxy that reads along has one too."}
	case says(said, "certificate has expired", "not yet valid"):
		return outOfDate(said, where)
	case says(said, "certificate is valid for", "not valid for any names", "ip sans", "relies on legacy common name"):
		named := ""
		if m := certifiedFor.FindStringSubmatch(said); m != nil {
			named = ", but for " + m[1]
		}
		return advice{"The certificate of " + where + " is not for that name" + named + ".",
			"Use the name that the certificate has, or mend the certificate."}
	case says(said, "protocol version not supported", "handshake failure", "no cipher", "no supported versions"):
		return advice{where + " and weir have no version of TLS in common.", "Update the endpoint to TLS 1.2 or later."}
	case says(said, "certificate required", "bad certificate"):
		return advice{where + " wants a client certificate, which weir does not send.", "Reach it through something that does, or by another way."}
	case says(said, "timeout"):
		return advice{"The TLS handshake with " + where + " did not end in time.",
			"See whether something on the way holds it up, and whether --upstream-proxy is needed."}
	}
	return advice{"The TLS connection to " + where + " failed.", "See whether the port speaks TLS, and whether something on the way replaces certificates."}
}

// outOfDate tells an expired certificate from a clock that is behind: Go says
// "current time … is after …" for the one and "is before" for the other.
func outOfDate(said, where string) advice {
	if says(said, " is before ") {
		return advice{"The certificate of " + where + " is not yet valid by this machine's clock.",
			"Set the clock right; if it is, the certificate begins later."}
	}
	return advice{"The certificate of " + where + " has expired.",
		"Renew it; if it is fresh, set this machine's clock right."}
}
