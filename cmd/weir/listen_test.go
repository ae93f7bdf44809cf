package main

import (
	"net"
	"testing"
)

// Who names the addresses of IPv4 listens there, and reads so.
func TestAnAddressIsListenedOnAsItWasNamed(t *testing.T) {
	for _, host := range []string{"0.0.0.0", "127.0.0.1"} {
		l, err := listen("listen", host+":0", true)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := net.SplitHostPort(l.Addr().String()); got != host {
			t.Errorf("%s became %s", host, l.Addr())
		}
		l.Close()
	}
}
