package proxy

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
)

// rootFiles are where systems keep the roots they trust, as one PEM file.
var rootFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Arch, Gentoo, NixOS
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
	"/etc/pki/tls/certs/ca-bundle.crt",                  // older ones of these
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/ssl/cert.pem",                                 // Alpine, macOS, OpenBSD
	"/usr/local/etc/ssl/cert.pem",                       // FreeBSD
}

// Bundle writes ca-bundle.pem into an authority's folder and gives its absolute
// path. It is for the clients that replace the roots they trust by a file's
// (SSL_CERT_FILE): it holds those of the file that SSL_CERT_FILE names now, else
// the system's, and the authority's. It is written only when one of them has
// changed. An error says which file is missing; without the others' roots there
// is no bundle, for it would cut its clients off from every other host.
func Bundle(dir string) (path string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", authorityError(dir, err)
	}
	path = filepath.Join(dir, bundleFile)
	root, err := rootIn(dir)
	if err != nil {
		return "", err
	}
	roots, err := othersRoots(path)
	if err != nil {
		return "", err
	}
	if err := writeCertificates(path, encodePEM(root.Raw), roots); err != nil {
		return "", err
	}
	return path, nil
}

// Beside writes a file into an authority's folder with its certificate and those
// of the file named, and gives its absolute path. It is for the clients that
// trust one file's certificates beside the roots they have (NODE_EXTRA_CA_CERTS),
// where the user has given them one. The same certificates have the same file.
func Beside(dir, file string) (path string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", authorityError(dir, err)
	}
	root, err := rootIn(dir)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if !holdsCertificate(text) {
		return "", fmt.Errorf("%s holds no PEM certificate; name another file, or unset the variable", file)
	}
	var others []byte
	for block := range blocks(text) {
		if !bytes.Equal(block.Bytes, root.Raw) { // a shell may name what was written before
			others = append(others, encodePEM(block.Bytes)...)
		}
	}
	path = filepath.Join(dir, fmt.Sprintf("ca-beside-%08x.pem", uint32(xxhash.Sum64(others))))
	if err := writeCertificates(path, encodePEM(root.Raw), others); err != nil {
		return "", err
	}
	return path, nil
}

// rootIn reads the certificate of a folder's authority.
func rootIn(dir string) (*x509.Certificate, error) {
	own := filepath.Join(dir, authorityFile)
	text, err := os.ReadFile(own)
	if err != nil {
		return nil, authorityError(own, fmt.Errorf("%w; weir ca makes it", plain(err)))
	}
	root, err := parseRoot(text)
	if err != nil {
		return nil, authorityError(own, fmt.Errorf("%w; make a new authority with weir ca --rotate", err))
	}
	return root, nil
}

// writeCertificates writes the certificates of two PEM texts to a file, each
// once, unless they stand there. They alone are copied: a file may hold a private
// key beside them.
func writeCertificates(path string, first, second []byte) error {
	var bundle []byte
	seen := map[string]bool{}
	for _, text := range [][]byte{first, second} {
		for block := range blocks(text) {
			if !seen[string(block.Bytes)] {
				seen[string(block.Bytes)] = true
				bundle = append(bundle, encodePEM(block.Bytes)...)
			}
		}
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, bundle) {
		return nil
	}
	if err := writeWhole(path, bundle, 0o644); err != nil {
		return authorityError(path, err)
	}
	return nil
}

// othersRoots reads the roots that a client would trust if nobody said
// otherwise. A shell may name weir's own bundle, which is no source of itself.
func othersRoots(own string) ([]byte, error) {
	if file := os.Getenv("SSL_CERT_FILE"); file != "" && !sameFile(file, own) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("SSL_CERT_FILE: %w; name another file, or unset it", err)
		}
		if !holdsCertificate(text) {
			return nil, fmt.Errorf("SSL_CERT_FILE: %s holds no PEM certificate; name another file, or unset it", file)
		}
		return text, nil
	}
	for _, file := range rootFiles {
		text, err := os.ReadFile(file)
		if err == nil && holdsCertificate(text) {
			return text, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the system's root certificates: %w; name another file with SSL_CERT_FILE", err)
		}
	}
	return nil, errors.New("the system's root certificates are in none of the usual files; install them (ca-certificates), or name a PEM file with SSL_CERT_FILE")
}

// sameFile says whether two paths lead to one file that exists.
func sameFile(a, b string) bool {
	of, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(of, other)
}

func holdsCertificate(text []byte) bool {
	for range blocks(text) {
		return true
	}
	return false
}

// blocks are the certificates of a PEM file.
func blocks(text []byte) func(yield func(*pem.Block) bool) {
	return func(yield func(*pem.Block) bool) {
		for {
			var block *pem.Block
			if block, text = pem.Decode(text); block == nil {
				return
			}
			if block.Type == "CERTIFICATE" && !yield(block) {
				return
			}
		}
	}
}
