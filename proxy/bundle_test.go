package proxy

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// certificatesIn names the certificates of a PEM file by their whole content.
func certificatesIn(t *testing.T, path string) (found map[string]int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found = map[string]int{}
	for block := range blocks(text) {
		found[string(encodePEM(block.Bytes))]++
	}
	return found
}

func bundle(t *testing.T, dir string) string {
	t.Helper()
	path, err := Bundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// systemRoots makes a file the place where the system keeps its roots.
func systemRoots(t *testing.T, files ...string) {
	t.Helper()
	was := rootFiles
	rootFiles = files
	t.Cleanup(func() { rootFiles = was })
	t.Setenv("SSL_CERT_FILE", "")
}

func TestBundleHoldsTheSystemsRootsAndWeirs(t *testing.T) {
	dir, system := t.TempDir(), filepath.Join(t.TempDir(), "system.pem")
	a := openAuthority(t, dir)
	one, two := string(openAuthority(t, t.TempDir()).PEM()), string(openAuthority(t, t.TempDir()).PEM())
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")}))
	rewrite(t, system, "# a comment\n"+one+key+one)
	systemRoots(t, filepath.Join(t.TempDir(), "missing.pem"), system)

	path := bundle(t, dir)
	if path != filepath.Join(dir, "ca-bundle.pem") {
		t.Errorf("it is at %s", path)
	}
	if diff := cmp.Diff(map[string]int{one: 1, string(a.PEM()): 1}, certificatesIn(t, path)); diff != "" {
		t.Errorf("a bundle with a comment, a key and a double (-want +got):\n%s", diff)
	}
	if text, _ := os.ReadFile(path); strings.Contains(string(text), "PRIVATE") {
		t.Error("a key went into the bundle")
	}
	first, err := os.Stat(path)
	if err != nil || first.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", first.Mode(), err)
	}
	bundle(t, dir)
	if again, err := os.Stat(path); err != nil || !os.SameFile(first, again) {
		t.Error("written again although nothing changed")
	}

	rewrite(t, system, two)
	bundle(t, dir)
	if diff := cmp.Diff(map[string]int{two: 1, string(a.PEM()): 1}, certificatesIn(t, path)); diff != "" {
		t.Errorf("after the system's roots changed (-want +got):\n%s", diff)
	}
	if err := a.Rotate(); err != nil {
		t.Fatal(err)
	}
	bundle(t, dir)
	if diff := cmp.Diff(map[string]int{two: 1, string(a.PEM()): 1}, certificatesIn(t, path)); diff != "" {
		t.Errorf("after a rotation (-want +got):\n%s", diff)
	}
}

func TestBundleTakesTheRootsThatTheUserNames(t *testing.T) {
	dir, system, named := t.TempDir(), filepath.Join(t.TempDir(), "system.pem"), filepath.Join(t.TempDir(), "named.pem")
	a := openAuthority(t, dir)
	one, two := string(openAuthority(t, t.TempDir()).PEM()), string(openAuthority(t, t.TempDir()).PEM())
	rewrite(t, system, one)
	rewrite(t, named, two)
	systemRoots(t, system)

	t.Setenv("SSL_CERT_FILE", named)
	path := bundle(t, dir)
	if diff := cmp.Diff(map[string]int{two: 1, string(a.PEM()): 1}, certificatesIn(t, path)); diff != "" {
		t.Errorf("SSL_CERT_FILE names another file (-want +got):\n%s", diff)
	}
	// A shell in which the bundle is exported must not feed it to itself: a root
	// that was rotated out would stay for ever.
	t.Setenv("SSL_CERT_FILE", path)
	if err := a.Rotate(); err != nil {
		t.Fatal(err)
	}
	bundle(t, dir)
	if diff := cmp.Diff(map[string]int{one: 1, string(a.PEM()): 1}, certificatesIn(t, path)); diff != "" {
		t.Errorf("SSL_CERT_FILE names the bundle (-want +got):\n%s", diff)
	}
}

func TestBundleWithoutOthersRootsIsNotWritten(t *testing.T) {
	dir, empty := t.TempDir(), filepath.Join(t.TempDir(), "empty.pem")
	openAuthority(t, dir)
	rewrite(t, empty, "nothing")
	for _, row := range []struct{ sentence, variable, system, want string }{
		{"a system without roots", "", filepath.Join(dir, "missing.pem"), "in none of the usual files; install them"},
		{"a system with an empty file", "", empty, "in none of the usual files; install them"},
		{"a variable that names no file", filepath.Join(dir, "missing.pem"), empty, "SSL_CERT_FILE: open " + dir + "/missing.pem: no such file or directory; name another"},
		{"a variable that names no certificates", empty, empty, "holds no PEM certificate; name another file, or unset it"},
	} {
		systemRoots(t, row.system)
		t.Setenv("SSL_CERT_FILE", row.variable)
		path, err := Bundle(dir)
		if err == nil || path != "" || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q, %v", row.sentence, path, err)
		}
		if _, err := os.Stat(filepath.Join(dir, bundleFile)); err == nil {
			t.Errorf("%s: a bundle was written", row.sentence)
		}
	}
	if _, err := Bundle(t.TempDir()); err == nil || !strings.Contains(err.Error(), "ca.pem: no such file or directory; weir ca makes it") {
		t.Errorf("a folder without an authority: %v", err)
	}
}

func TestBesideHoldsTheUsersCertificatesToo(t *testing.T) {
	dir, corp := t.TempDir(), filepath.Join(t.TempDir(), "corp.pem")
	a := openAuthority(t, dir)
	one := string(openAuthority(t, t.TempDir()).PEM())
	rewrite(t, corp, one+string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")})))
	path, err := Beside(dir, corp)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{one: 1, string(a.PEM()): 1}, certificatesIn(t, path)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text, _ := os.ReadFile(path); strings.Contains(string(text), "PRIVATE") {
		t.Error("a key went into it")
	}
	if again, err := Beside(dir, path); err != nil || again != path {
		t.Errorf("of itself it makes %s, %v; want %s", again, err, path)
	}
	rewrite(t, corp, "nothing")
	if _, err := Beside(dir, corp); err == nil || !strings.Contains(err.Error(), "holds no PEM certificate") {
		t.Errorf("a file without certificates: %v", err)
	}
	if _, err := Beside(dir, filepath.Join(dir, "missing.pem")); err == nil {
		t.Error("a file that is missing is no error")
	}
}
