package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	unlock, err := lockFolder(dir)
	if err != nil {
		if !errors.Is(was, errNoAuthority) {
			return nil, was // what is wrong with the files says more
		}
		return nil, err
	}
	defer unlock()
	in, err := readIssuer(dir)
	if !errors.Is(err, errNoAuthority) {
		return in, err
	}
	// A key alone is left by a process that died before it wrote the certificate.
	key, err := readKey(filepath.Join(dir, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err == nil {
			err = writeKey(dir, key)
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

// lockFolder makes a folder, and waits until no other process writes there.
func lockFolder(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, authorityError(dir, fmt.Errorf("cannot be made: %w; choose another folder with --dir", plain(err)))
	}
	if err := closedToOthers(dir); err != nil {
		return nil, err
	}
	unlock, err = lockedfile.MutexAt(filepath.Join(dir, lockFile)).Lock()
	if err != nil {
		return nil, authorityError(dir, fmt.Errorf("cannot be written: %w; choose another folder with --dir", plain(err)))
	}
	return unlock, nil
}

// RotateAuthority gives a folder a new key and certificate, whatever state the
// old ones are in. The old certificate, if there is one, is kept beside the new
// one without its key; kept is its file.
func RotateAuthority(dir string) (a *Authority, kept string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, "", authorityError(dir, err)
	}
	a = &Authority{dir: dir}
	if kept, err = a.rotate(); err != nil {
		return nil, "", err
	}
	return a, kept, nil
}

// Rotate gives the authority a new key and certificate. The old certificate is
// kept as ca-<fingerprint>.pem, its key is not; leaves that it signed are
// forgotten. Other processes go on with the old ones until they are restarted.
func (a *Authority) Rotate() error {
	_, err := a.rotate()
	return err
}

func (a *Authority) rotate() (kept string, err error) {
	unlock, err := lockFolder(a.dir)
	if err != nil {
		return "", err
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
	if err := writeKey(a.dir, key); err != nil {
		return "", err
	}
	if err := writeRoot(a.dir, key); err != nil {
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
