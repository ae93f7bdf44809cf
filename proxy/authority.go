package proxy

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// The files of an authority's folder.
const (
	authorityFile = "ca.pem"
	keyFile       = "ca-key.pem"
	bundleFile    = "ca-bundle.pem"
	lockFile      = "ca.lock"
)

// A root that a user installs by hand may live long; its key never leaves the
// machine.
const authorityYears = 10

// errNoAuthority is that a folder holds no certificate yet.
var errNoAuthority = errors.New("holds no certificate authority")

// Authority signs certificates for the hosts that are measured. All of its
// methods may be called from several goroutines.
type Authority struct {
	dir string
	now atomic.Pointer[issuer] // another one after Rotate
}

// OpenAuthority opens the authority in a folder. On first use it makes the
// folder (0700), ca.pem (0644) and ca-key.pem (0600); processes that do so at
// once agree on one. An error is one line that names the file and says what to
// do: the key can be read by others, a file is damaged, key and certificate do
// not belong together, or the certificate has expired.
func OpenAuthority(dir string) (*Authority, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, authorityError(dir, err)
	}
	in, err := readIssuer(dir)
	if err != nil {
		in, err = settle(dir, err)
	}
	if err != nil {
		return nil, err
	}
	a := &Authority{dir: dir}
	a.now.Store(in)
	return a, nil
}

// settle looks once more while no other process makes or replaces the files,
// and makes those that are missing.
func settle(dir string, was error) (*issuer, error) {
	none := errors.Is(was, errNoAuthority)
	if none {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, authorityError(dir, err)
		}
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(dir, lockFile)).Lock()
	if err != nil {
		if !none {
			return nil, was // what is wrong with the files says more
		}
		return nil, authorityError(dir, err)
	}
	defer unlock()
	in, err := readIssuer(dir)
	if !errors.Is(err, errNoAuthority) {
		return in, err
	}
	// A key alone is left by a process that died before it wrote the certificate.
	key, err := readKey(filepath.Join(dir, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		var made *ecdsa.PrivateKey
		if made, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err == nil {
			key, err = made, writeKey(dir, made)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := writeRoot(dir, key); err != nil {
		return nil, err
	}
	return readIssuer(dir)
}

// RotateAuthority gives a folder a new key and certificate, whatever state the
// old ones are in. The old certificate, if there is one, is kept beside the new
// one without its key; kept is its file.
func RotateAuthority(dir string) (a *Authority, kept string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, "", authorityError(dir, err)
	}
	a = &Authority{dir: dir}
	kept, err = a.rotate()
	return a, kept, err
}

// Rotate gives the authority a new key and certificate. The old certificate is
// kept as ca-<fingerprint>.pem, its key is not; leaves that it signed are
// forgotten. Other processes go on with the old ones until they are restarted.
func (a *Authority) Rotate() error {
	_, err := a.rotate()
	return err
}

func (a *Authority) rotate() (kept string, err error) {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return "", authorityError(a.dir, err)
	}
	if err := closedToOthers(a.dir); err != nil {
		return "", err
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(a.dir, lockFile)).Lock()
	if err != nil {
		return "", authorityError(a.dir, err)
	}
	defer unlock()
	old, err := os.ReadFile(a.Path())
	switch {
	case err == nil:
		kept = filepath.Join(a.dir, "ca-"+shortName(old)+".pem")
		err = writeWhole(kept, old, 0o644)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return "", authorityError(a.Path(), err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", authorityError(a.dir, err)
	}
	if err := errors.Join(writeKey(a.dir, key), writeRoot(a.dir, key)); err != nil {
		return "", err
	}
	in, err := readIssuer(a.dir)
	if err != nil {
		return "", err
	}
	a.now.Store(in)
	return kept, nil
}

// Certificate gives the leaf for a host: a DNS name in ASCII, or an IP. It is
// signed once and used again until shortly before it expires. The chain is the
// leaf alone: a client has the root, or does not trust it.
func (a *Authority) Certificate(host string) (*tls.Certificate, error) {
	c, err := a.now.Load().certificate(host)
	if err != nil {
		return nil, authorityError(a.Path(), err)
	}
	return c, nil
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte { return encodePEM(a.now.Load().root.Raw) }

// Path is the file of the authority's certificate; it is absolute.
func (a *Authority) Path() string { return filepath.Join(a.dir, authorityFile) }

// Name is the common name that a trust store lists the authority by.
func (a *Authority) Name() string { return a.now.Load().root.Subject.CommonName }

// Fingerprint is the SHA-256 of the certificate as OpenSSL and browsers write
// it: 32 bytes in upper-case hex with colons between.
func (a *Authority) Fingerprint() string {
	sum := sha256.Sum256(a.now.Load().root.Raw)
	var b strings.Builder
	for i, octet := range sum {
		if i > 0 {
			b.WriteByte(':')
		}
		fmt.Fprintf(&b, "%02X", octet)
	}
	return b.String()
}

// NotAfter is the last instant at which the authority is valid.
func (a *Authority) NotAfter() time.Time { return a.now.Load().root.NotAfter }

// readIssuer reads both files and checks that they can sign; errNoAuthority if
// there is no certificate.
func readIssuer(dir string) (*issuer, error) {
	path := filepath.Join(dir, authorityFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, authorityError(dir, errNoAuthority)
	}
	if err != nil {
		return nil, authorityError(path, err)
	}
	if err := closedToOthers(dir); err != nil {
		return nil, err
	}
	root, err := parseRoot(text)
	if err != nil {
		return nil, authorityError(path, fmt.Errorf("%w; put the file back, or make a new authority with weir ca --rotate", err))
	}
	if now := time.Now(); now.After(root.NotAfter) {
		return nil, authorityError(path, expired(root))
	}
	keyPath := filepath.Join(dir, keyFile)
	key, err := readKey(keyPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, authorityError(keyPath, errors.New("is missing; put it back, or make a new authority with weir ca --rotate"))
	}
	if err != nil {
		return nil, err
	}
	public, ok := root.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(key.Public()) {
		return nil, authorityError(keyPath, errors.New("is not the key of "+authorityFile+"; put the right one back, or make a new authority with weir ca --rotate"))
	}
	return newIssuer(root, key)
}

// readKey reads a private key that nobody else can read.
func readKey(path string) (crypto.Signer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, authorityError(path, err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, authorityError(path, fmt.Errorf("others may read it (mode %04o), and sign as weir; chmod 600 %s, and if somebody did, weir ca --rotate", info.Mode().Perm(), path))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, authorityError(path, err)
	}
	block, _ := pem.Decode(text)
	if block != nil {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if signer, ok := key.(crypto.Signer); ok {
				return signer, nil
			}
		}
	}
	return nil, authorityError(path, errors.New("holds no private key as PKCS #8 in PEM; put it back, or make a new authority with weir ca --rotate"))
}

// parseRoot reads the first certificate of a PEM file.
func parseRoot(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("holds no PEM certificate")
	}
	root, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return nil, fmt.Errorf("is damaged (%w)", err)
	case !root.IsCA:
		return nil, errors.New("is no authority's certificate")
	}
	return root, nil
}

func writeKey(dir string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return authorityError(dir, err)
	}
	path := filepath.Join(dir, keyFile)
	if err := writeWhole(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return authorityError(path, err)
	}
	return nil
}

// writeRoot signs a key's certificate with that key.
func writeRoot(dir string, key crypto.Signer) error {
	id, err := keyID(key.Public())
	if err != nil {
		return authorityError(dir, err)
	}
	name := []string{"weir"}
	if host, err := os.Hostname(); err == nil {
		if host = hostLabel(host); host != "" {
			name = append(name, host)
		}
	}
	name = append(name, "CA", hex.EncodeToString(id[:4]))
	now := time.Now().UTC().Truncate(time.Second)
	template := &x509.Certificate{
		// The key's beginning keeps a new authority from bearing the old one's name:
		// OpenSSL would look the issuer up by name and find the wrong key.
		Subject:               pkix.Name{Organization: []string{"weir"}, CommonName: strings.Join(name, " ")},
		NotBefore:             now.Add(-24 * time.Hour), // a virtual machine's clock may be behind
		NotAfter:              now.AddDate(authorityYears, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		SubjectKeyId:          id,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authorityError(dir, err)
	}
	path := filepath.Join(dir, authorityFile)
	if err := writeWhole(path, encodePEM(der), 0o644); err != nil {
		return authorityError(path, err)
	}
	return nil
}

// keyID names a public key: the beginning of its SHA-256, as RFC 7093 has it.
func keyID(key crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(der)
	return sum[:20], nil
}

// shortName tells kept certificates apart: the 8 hex digits in an authority's
// name, else those of the file's own hash.
func shortName(text []byte) string {
	sum := sha256.Sum256(text)
	id := sum[:]
	if root, err := parseRoot(text); err == nil {
		if of, err := keyID(root.PublicKey); err == nil {
			id = of
		}
	}
	return hex.EncodeToString(id[:4])
}

// hostLabel is the first label of a host's name, as far as it fits a common
// name of 64 characters.
func hostLabel(host string) string {
	host, _, _ = strings.Cut(host, ".")
	for _, c := range host {
		if c <= ' ' || c > '~' {
			return ""
		}
	}
	return host[:min(len(host), 40)]
}

func encodePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// closedToOthers refuses a folder in which others could put a CA of theirs.
func closedToOthers(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return authorityError(dir, err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return authorityError(dir, fmt.Errorf("others may write into it (mode %04o); chmod 700 %s, or choose another folder with --dir", info.Mode().Perm(), dir))
	}
	return nil
}

// writeWhole writes a file of which readers see all or the old one.
func writeWhole(path string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

func expired(root *x509.Certificate) error {
	return fmt.Errorf("expired on %s; make a new authority with weir ca --rotate", root.NotAfter.Format(time.DateOnly))
}

// authorityError names the file in front of what is wrong with it.
func authorityError(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("certificate authority %s: %w", path, err)
}
