package proxy

import (
	"container/list"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// Clients of Apple's and browsers refuse leaves that are valid for longer than 398 days.
	leafValidity = 397 * 24 * time.Hour
	// A connection that begins now should not outlive its certificate.
	leafRenewal = 24 * time.Hour
	// The hosts of which leaves are kept. Those that are measured are few; a
	// client that asks for many names must not fill the memory.
	maxLeaves = 1024
)

// issuer is one root with its key, and the leaves that it signed.
type issuer struct {
	root    *x509.Certificate
	key     crypto.Signer
	leafKey *ecdsa.PrivateKey // of all leaves: a key for each host would protect nothing more

	signing singleflight.Group

	mu     sync.Mutex
	byHost map[string]*list.Element // of *leaf
	used   list.List                // the latest in front
}

type leaf struct {
	host string
	cert *tls.Certificate
}

func newIssuer(root *x509.Certificate, key crypto.Signer) (*issuer, error) {
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return &issuer{root: root, key: key, leafKey: leafKey, byHost: map[string]*list.Element{}}, nil
}

// certificate gives a host's leaf, and signs it if there is none that will last.
func (in *issuer) certificate(host string) (*tls.Certificate, error) {
	host, err := canonicalHost(host)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if c := in.kept(host, now); c != nil {
		return c, nil
	}
	c, err, _ := in.signing.Do(host, func() (any, error) {
		if c := in.kept(host, now); c != nil {
			return c, nil // signed between the look above and this one
		}
		c, err := in.sign(host, now)
		if err == nil {
			in.keep(host, c)
		}
		return c, err
	})
	if err != nil {
		return nil, err
	}
	return c.(*tls.Certificate), nil
}

// kept is the leaf of a host that need not be renewed, else nil. One that lasts
// as long as its root gains nothing from a new signature.
func (in *issuer) kept(host string, now time.Time) *tls.Certificate {
	in.mu.Lock()
	defer in.mu.Unlock()
	e := in.byHost[host]
	if e == nil {
		return nil
	}
	c := e.Value.(*leaf).cert
	end := c.Leaf.NotAfter
	if end.Before(in.root.NotAfter) {
		end = end.Add(-leafRenewal)
	}
	if now.After(end) {
		return nil
	}
	in.used.MoveToFront(e)
	return c
}

// keep takes a leaf in, and lets the one go that was not asked for longest.
func (in *issuer) keep(host string, c *tls.Certificate) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if old := in.byHost[host]; old != nil {
		in.used.Remove(old)
	}
	in.byHost[host] = in.used.PushFront(&leaf{host, c})
	if in.used.Len() > maxLeaves {
		delete(in.byHost, in.used.Remove(in.used.Back()).(*leaf).host)
	}
}

// sign makes a leaf, valid from an hour ago, since clocks differ, and not
// longer than its root.
func (in *issuer) sign(host string, now time.Time) (*tls.Certificate, error) {
	if now.After(in.root.NotAfter) {
		return nil, expired(in.root)
	}
	from := now.UTC().Truncate(time.Second).Add(-time.Hour)
	until := from.Add(leafValidity)
	if until.After(in.root.NotAfter) {
		until = in.root.NotAfter
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{Organization: []string{"weir"}},
		NotBefore:             from,
		NotAfter:              until,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	if len(host) <= 64 { // the most that a common name may have
		template.Subject.CommonName = host
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		template.IPAddresses = []net.IP{ip.AsSlice()}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, in.root, in.leafKey.Public(), in.key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign for %q: %w", host, err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot sign for %q: %w", host, err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: in.leafKey, Leaf: parsed}, nil
}

// canonicalHost gives equal hosts one spelling, and refuses what is neither a
// DNS name nor an IP.
func canonicalHost(host string) (string, error) {
	if ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")); err == nil {
		return ip.WithZone("").Unmap().String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if len(name) > 253 {
		return "", fmt.Errorf("cannot sign for a name of %d characters; want a DNS name or an IP", len(name))
	}
	for _, label := range strings.Split(name, ".") {
		ok := label != "" && len(label) <= 63
		for _, c := range label {
			ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_')
		}
		if !ok {
			return "", fmt.Errorf("cannot sign for %q; want a DNS name in ASCII, or an IP, without a port", host)
		}
	}
	return name, nil
}
