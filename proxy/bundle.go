package proxy

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	own := filepath.Join(dir, authorityFile)
	path = filepath.Join(dir, bundleFile)
	text, err := os.ReadFile(own)
	if err != nil {
		return "", authorityError(own, fmt.Errorf("%w; weir ca makes it", plain(err)))
	}
	root, err := parseRoot(text)
	if err != nil {
		return "", authorityError(own, fmt.Errorf("%w; make a new authority with weir ca --rotate", err))
	}
	roots, err := othersRoots(path)
	if err != nil {
		return "", err
	}
	// Certificates alone are copied: a file may hold a private key beside them.
	bundle, seen := encodePEM(root.Raw), map[string]bool{string(root.Raw): true}
	for block := range blocks(roots) {
		if !seen[string(block.Bytes)] {
			seen[string(block.Bytes)] = true
			bundle = append(bundle, encodePEM(block.Bytes)...)
		}
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, bundle) {
		return path, nil
	}
	if err := writeWhole(path, bundle, 0o644); err != nil {
		return "", authorityError(path, err)
	}
	return path, nil
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
