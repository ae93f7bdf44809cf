package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func poolOf(root *x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(root)
	return pool
}

// verify checks a leaf for a host as a client does.
func verify(t testing.TB, root, leaf *x509.Certificate, host string) {
	t.Helper()
	if _, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: poolOf(root), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		t.Errorf("%s: %v", host, err)
	}
}

var long = strings.Repeat("a123456789.", 22) + "example" // 249 characters

func TestLeavesAreForOneHostAndNoOther(t *testing.T) {
	a := openAuthority(t, t.TempDir())
	root := rootOf(t, a.PEM())
	for _, row := range []struct {
		sentence, host, as string
		names, ips         []string
	}{
		{"a name", "api.anthropic.com", "api.anthropic.com", []string{"api.anthropic.com"}, nil},
		{"capitals", "API.OpenAI.com", "api.openai.com", []string{"api.openai.com"}, nil},
		{"the root's dot", "api.openai.com.", "api.openai.com", []string{"api.openai.com"}, nil},
		{"one label", "localhost", "localhost", []string{"localhost"}, nil},
		{"an underscore, as containers' names have", "llm_server", "llm_server", []string{"llm_server"}, nil},
		{"a name in punycode", "xn--bcher-kva.example", "xn--bcher-kva.example", []string{"xn--bcher-kva.example"}, nil},
		{"a name too long for a common name", long, long, []string{long}, nil},
		{"IPv4", "127.0.0.1", "127.0.0.1", nil, []string{"127.0.0.1"}},
		{"IPv4 inside IPv6", "::ffff:10.0.0.1", "10.0.0.1", nil, []string{"10.0.0.1"}},
		{"IPv6", "2001:DB8::1", "2001:db8::1", nil, []string{"2001:db8::1"}},
		{"IPv6 as a URL has it", "[::1]", "::1", nil, []string{"::1"}},
		{"IPv6 with a zone, which certificates do not have", "fe80::1%eth0", "fe80::1", nil, []string{"fe80::1"}},
	} {
		c, err := a.Certificate(row.host)
		if err != nil {
			t.Errorf("%s: %v", row.sentence, err)
			continue
		}
		verify(t, root, c.Leaf, row.as)
		var ips []string
		for _, ip := range c.Leaf.IPAddresses {
			ips = append(ips, ip.String())
		}
		if diff := cmp.Diff([][]string{row.names, row.ips}, [][]string{c.Leaf.DNSNames, ips}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.sentence, diff)
		}
		if c.Leaf.VerifyHostname("other.example") == nil || c.Leaf.VerifyHostname("10.9.8.7") == nil {
			t.Errorf("%s: good for other hosts too", row.sentence)
		}
		now := time.Now()
		if l := c.Leaf; l.NotAfter.Sub(l.NotBefore) > 397*24*time.Hour || now.Sub(l.NotBefore) < time.Hour-time.Minute || now.Sub(l.NotBefore) > 2*time.Hour || l.IsCA {
			t.Errorf("%s: valid from %s to %s, CA %v", row.sentence, l.NotBefore, l.NotAfter, l.IsCA)
		}
		if again, err := a.Certificate(row.as); err != nil || again != c {
			t.Errorf("%s: signed twice (%v)", row.sentence, err)
		}
	}
}

func TestHostsThatNoCertificateCanName(t *testing.T) {
	a := openAuthority(t, t.TempDir())
	for _, host := range []string{"", ".", "a..b", "*.example.com", "api.openai.com:443", "[::1]:443", "a b", "a/b", "bücher.example", "a\x00b", strings.Repeat("a", 64), strings.Repeat("a.", 200) + "a"} {
		c, err := a.Certificate(host)
		if err == nil || c != nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "cannot sign for") {
			t.Errorf("%q: %v, %v", host, c, err)
		}
	}
}

// serveTLS answers handshakes with an authority's leaf for the name asked for.
func serveTLS(t testing.TB, a *Authority) (addr string) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if hello.ServerName == "" {
				return a.Certificate("127.0.0.1")
			}
			return a.Certificate(hello.ServerName)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				c.(*tls.Conn).Handshake() // a client that refuses shows it
				c.Read(make([]byte, 1))
			})
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return l.Addr().String()
}

func TestClientsShakeHandsWithAnyHostAtOnce(t *testing.T) {
	a := openAuthority(t, t.TempDir())
	addr := serveTLS(t, a)
	roots := poolOf(rootOf(t, a.PEM()))
	var mu sync.Mutex
	serials := map[string]map[string]bool{}
	var clients sync.WaitGroup
	for i := range 40 {
		host := []string{"api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "127.0.0.1"}[i%4]
		version := []uint16{tls.VersionTLS12, tls.VersionTLS13}[i/4%2]
		clients.Go(func() {
			c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots, ServerName: host, MaxVersion: version})
			if err != nil {
				t.Errorf("%s: %v", host, err)
				return
			}
			defer c.Close()
			mu.Lock()
			defer mu.Unlock()
			if serials[host] == nil {
				serials[host] = map[string]bool{}
			}
			serials[host][c.ConnectionState().PeerCertificates[0].SerialNumber.String()] = true
		})
	}
	clients.Wait()
	for host, seen := range serials {
		if len(seen) != 1 {
			t.Errorf("%s was signed for %d times", host, len(seen))
		}
	}
	if len(serials) != 4 {
		t.Errorf("%d hosts served, want 4", len(serials))
	}

	other := openAuthority(t, t.TempDir())
	_, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: poolOf(rootOf(t, other.PEM())), ServerName: "api.openai.com"})
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Errorf("who trusts another authority got %v", err)
	}
}

func TestLeavesAndRotationsAtOnce(t *testing.T) {
	a := openAuthority(t, t.TempDir())
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				if _, err := a.Certificate(fmt.Sprintf("h%d.example", (i+j)%20)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range 5 {
			if err := a.Rotate(); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	c, err := a.Certificate("h1.example")
	if err != nil {
		t.Fatal(err)
	}
	verify(t, rootOf(t, a.PEM()), c.Leaf, "h1.example")
}

func TestLeavesThatNobodyAsksForAreForgotten(t *testing.T) {
	a := openAuthority(t, t.TempDir())
	get := func(host string) *tls.Certificate {
		c, err := a.Certificate(host)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	used, unused := get("used.example"), get("unused.example")
	for i := range maxLeaves {
		get(fmt.Sprintf("h%d.example", i))
		if get("used.example") != used {
			t.Fatalf("the one in use was forgotten after %d others", i)
		}
	}
	if n := a.now.Load().used.Len(); n != maxLeaves || len(a.now.Load().byHost) != maxLeaves {
		t.Errorf("%d and %d leaves are kept, want %d", n, len(a.now.Load().byHost), maxLeaves)
	}
	if get("unused.example") == unused {
		t.Error("the one not in use is still kept")
	}
}

// OpenSSL's strict rules are those that newer Pythons check by.
func TestOpenSSLVerifiesTheChain(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not on the PATH: ", err)
	}
	a := openAuthority(t, t.TempDir())
	check := func(ca, leaf string, args ...string) (string, error) {
		all := append([]string{"verify", "-no-CApath", "-no-CAstore", "-CAfile", ca, "-x509_strict", "-check_ss_sig", "-purpose", "sslserver"}, args...)
		out, err := exec.Command(openssl, append(all, leaf)...).CombinedOutput()
		return string(out), err
	}
	for host, flag := range map[string]string{"api.anthropic.com": "-verify_hostname", long: "-verify_hostname", "127.0.0.1": "-verify_ip", "2001:db8::1": "-verify_ip"} {
		c, err := a.Certificate(host)
		if err != nil {
			t.Fatal(err)
		}
		leaf := filepath.Join(t.TempDir(), "leaf.pem")
		if err := os.WriteFile(leaf, encodePEM(c.Certificate[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := check(a.Path(), leaf, flag, host); err != nil {
			t.Errorf("%s: %v: %s", host, err, out)
		}
		if out, err := check(a.Path(), leaf, "-verify_hostname", "other.example"); err == nil {
			t.Errorf("%s is taken for another host: %s", host, out)
		}
		if out, err := check(openAuthority(t, t.TempDir()).Path(), leaf, flag, host); err == nil {
			t.Errorf("%s is trusted by another authority's user: %s", host, out)
		}
	}
	out, err := exec.Command(openssl, "x509", "-in", a.Path(), "-noout", "-fingerprint", "-sha256").CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "="+a.Fingerprint()) {
		t.Errorf("openssl says %s (%v), weir %s", out, err, a.Fingerprint())
	}
}

func BenchmarkFirstCertificate(b *testing.B) {
	a := openAuthority(b, b.TempDir())
	i := 0
	for b.Loop() {
		i++
		if _, err := a.Certificate(fmt.Sprintf("h%d.example", i)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCachedCertificate(b *testing.B) {
	a := openAuthority(b, b.TempDir())
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := a.Certificate("api.anthropic.com"); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkFirstHandshake is a connection to a host that was never asked for,
// client's side and TCP included.
func BenchmarkFirstHandshake(b *testing.B) {
	a := openAuthority(b, b.TempDir())
	addr := serveTLS(b, a)
	roots := poolOf(rootOf(b, a.PEM()))
	i := 0
	for b.Loop() {
		i++
		c, err := tls.DialWithDialer(&net.Dialer{}, "tcp", addr, &tls.Config{RootCAs: roots, ServerName: fmt.Sprintf("h%d.example", i)})
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}
