package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/generator/sim"
)

// keep writes a certificate where --ca-file finds it.
func keep(t *testing.T, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// certified makes a certificate for 127.0.0.1 that holds in that time.
func certified(t *testing.T, from, to time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"Test & Co"}}, NotBefore: from, NotAfter: to,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestDoctorOnTLS(t *testing.T) {
	endpoint, err := sim.New(sim.Config{Engine: slowly(), Models: []string{"sim"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(endpoint.Close)
	serve := func(t *testing.T, c tls.Certificate) (address, ca string) {
		s := httptest.NewUnstartedServer(endpoint)
		s.TLS = &tls.Config{Certificates: []tls.Certificate{c}}
		s.Config.ErrorLog = noLog
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.URL, keep(t, c.Certificate[0])
	}
	now, day := time.Now(), 24*time.Hour
	address, ca := serve(t, certified(t, now.Add(-day), now.Add(90*day+time.Hour)))
	t.Run("trusted", func(t *testing.T) {
		consult(t, nil, "--upstream", address, "--ca-file", ca).want(t, 0, "✓ tls        TLS 1.3 in ", "certificate by Test & Co, 90 days left", "✓ chat ", "✓ gemini ")
	})
	t.Run("unknown authority", func(t *testing.T) {
		consult(t, nil, "--upstream", address).want(t, 1, "✗ tls  tls_error", "signed by an authority that this machine does not know", "--ca-file")
	})
	t.Run("another name", func(t *testing.T) {
		consult(t, nil, "--upstream", strings.Replace(address, "127.0.0.1", "localhost", 1), "--ca-file", ca).want(t, 1, "✓ dns ", "✗ tls ", "is not for that name")
	})
	t.Run("plain", func(t *testing.T) {
		consult(t, nil, "--upstream", strings.Replace(address, "https:", "http:", 1)).want(t, 1, "asked without it", "→ Use https://")
	})
	t.Run("soon expired", func(t *testing.T) {
		soon, ca := serve(t, certified(t, now.Add(-day), now.Add(2*day)))
		consult(t, nil, "--upstream", soon, "--ca-file", ca).want(t, 0, "! tls ", "The certificate ends soon.")
	})
	t.Run("expired", func(t *testing.T) {
		past, ca := serve(t, certified(t, now.Add(-2*day), now.Add(-day)))
		consult(t, nil, "--upstream", past, "--ca-file", ca).want(t, 1, "✗ tls ", "has expired")
	})
	t.Run("not yet valid", func(t *testing.T) {
		future, ca := serve(t, certified(t, now.Add(day), now.Add(2*day)))
		consult(t, nil, "--upstream", future, "--ca-file", ca).want(t, 1, "✗ tls ", "not yet valid by this machine's clock")
	})
	t.Run("TLS to a plain port", func(t *testing.T) {
		plain := serveSim(t, sim.Config{}, nil)
		consult(t, nil, "--upstream", strings.Replace(plain, "http:", "https:", 1)).want(t, 1, "✗ tls ", "does not speak TLS", "→ Use http://")
	})
}
