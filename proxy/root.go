package proxy

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
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
	"time"
)

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

func writeKey(dir string, key crypto.Signer) error {
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
	return fmt.Errorf("certificate authority %s: %w", path, plain(err))
}

// plain is an error of the system without the path around it.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
