package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func openAuthority(t testing.TB, dir string) *Authority {
	t.Helper()
	a, err := OpenAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// rootOf parses what an authority gives out as its certificate.
func rootOf(t testing.TB, text []byte) *x509.Certificate {
	t.Helper()
	block, rest := pem.Decode(text)
	if block == nil || len(rest) > 0 {
		t.Fatalf("not one PEM block: %s", text)
	}
	root, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestAuthorityIsMadeOnFirstUseAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "ca")
	a := openAuthority(t, dir)
	modes := map[string]string{}
	for _, name := range []string{"", authorityFile, keyFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		modes[name] = info.Mode().String()
	}
	if diff := cmp.Diff(map[string]string{"": "drwx------", authorityFile: "-rw-r--r--", keyFile: "-rw-------"}, modes); diff != "" {
		t.Errorf("modes (-want +got):\n%s", diff)
	}

	root := rootOf(t, a.PEM())
	if onDisk, err := os.ReadFile(a.Path()); err != nil || string(onDisk) != string(a.PEM()) || a.Path() != filepath.Join(dir, "ca.pem") {
		t.Errorf("%s holds %q, %v", a.Path(), onDisk, err)
	}
	key, ok := root.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		t.Errorf("the key is %T, want ECDSA on P-256", root.PublicKey)
	}
	if !root.IsCA || !root.MaxPathLenZero || root.MaxPathLen != 0 || root.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign || len(root.SubjectKeyId) != 20 {
		t.Errorf("CA %v, path %d, usage %b, key id %x", root.IsCA, root.MaxPathLen, root.KeyUsage, root.SubjectKeyId)
	}
	if want := regexp.MustCompile(`^weir (\S+ )?CA ` + hex.EncodeToString(root.SubjectKeyId[:4]) + `$`); !want.MatchString(a.Name()) || len(a.Name()) > 64 {
		t.Errorf("it is named %q", a.Name())
	}
	if years := a.NotAfter().Sub(root.NotBefore).Hours() / 24 / 365; years < 9.9 || years > 10.1 || !time.Now().After(root.NotBefore) {
		t.Errorf("valid from %s to %s", root.NotBefore, a.NotAfter())
	}
	sum := sha256.Sum256(root.Raw)
	if got := strings.ReplaceAll(a.Fingerprint(), ":", ""); got != strings.ToUpper(hex.EncodeToString(sum[:])) || len(a.Fingerprint()) != 95 {
		t.Errorf("fingerprint %s of %x", a.Fingerprint(), sum)
	}

	again := openAuthority(t, dir)
	if again.Fingerprint() != a.Fingerprint() {
		t.Error("opening it again made another one")
	}
	c, err := again.Certificate("api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	verify(t, root, c.Leaf, "api.example.com")
}

func TestAuthorityInAFolderThatIsNamedRelatively(t *testing.T) {
	t.Chdir(t.TempDir())
	if a := openAuthority(t, "ca"); !filepath.IsAbs(a.Path()) {
		t.Errorf("a tool that starts elsewhere cannot find %s", a.Path())
	}
}

// Two proxies that are started together must not sign with different roots.
func TestProcessesThatStartAtOnceAgreeOnOneAuthority(t *testing.T) {
	const child = "WEIR_AUTHORITY_TEST_CHILD"
	if dir := os.Getenv(child); dir != "" {
		a := openAuthority(t, dir)
		if _, err := a.Certificate("localhost"); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("fingerprint " + a.Fingerprint() + "\n")
		return
	}
	dir := filepath.Join(t.TempDir(), "ca")
	got := make([]string, 6)
	var started sync.WaitGroup
	for i := range got {
		started.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
			cmd.Env = append(os.Environ(), child+"="+dir)
			out, err := cmd.CombinedOutput()
			line := regexp.MustCompile(`fingerprint \S+`).Find(out)
			if err != nil || line == nil {
				t.Errorf("%v: %s", err, out)
			}
			got[i] = string(line)
		})
	}
	for range 8 { // and goroutines of this process
		started.Go(func() {
			if _, err := OpenAuthority(dir); err != nil {
				t.Error(err)
			}
		})
	}
	started.Wait()
	want := "fingerprint " + openAuthority(t, dir).Fingerprint()
	for _, line := range got {
		if line != want {
			t.Errorf("one has %s, another %s", line, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRotationMakesAnotherAuthorityAndForgetsTheOld(t *testing.T) {
	dir := t.TempDir()
	a := openAuthority(t, dir)
	old, oldPrint := rootOf(t, a.PEM()), a.Fingerprint()
	before, err := a.Certificate("localhost")
	if err != nil {
		t.Fatal(err)
	}
	oldKey, err := os.ReadFile(filepath.Join(dir, keyFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Rotate(); err != nil {
		t.Fatal(err)
	}
	after, err := a.Certificate("localhost")
	if err != nil {
		t.Fatal(err)
	}
	if a.Fingerprint() == oldPrint || after == before || openAuthority(t, dir).Fingerprint() != a.Fingerprint() {
		t.Error("it goes on as before")
	}
	verify(t, rootOf(t, a.PEM()), after.Leaf, "localhost")
	if _, err := after.Leaf.Verify(x509.VerifyOptions{Roots: poolOf(old)}); err == nil {
		t.Error("who trusts the old authority trusts the new one's leaf")
	}

	short := hex.EncodeToString(old.SubjectKeyId[:4])
	kept, err := os.ReadFile(filepath.Join(dir, "ca-"+short+".pem"))
	if err != nil || rootOf(t, kept).SerialNumber.Cmp(old.SerialNumber) != 0 {
		t.Errorf("the old certificate is not kept: %v", err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(filepath.Join(dir, f.Name())); err != nil || strings.Contains(string(text), string(oldKey)) {
			t.Errorf("%s still holds the old key (%v)", f.Name(), err)
		}
	}
}

func TestWhatIsWrongWithAnAuthorityIsSaidInOneLineAndRotationMendsIt(t *testing.T) {
	other := t.TempDir()
	openAuthority(t, other)
	copied := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			text, err := os.ReadFile(filepath.Join(other, name))
			if err != nil {
				t.Fatal(err)
			}
			rewrite(t, filepath.Join(dir, name), string(text))
		}
	}
	for _, row := range []struct {
		sentence string
		harm     func(t *testing.T, dir string)
		want     string
	}{
		{"a key that others can read", func(t *testing.T, dir string) { chmod(t, filepath.Join(dir, keyFile), 0o640) },
			`ca-key\.pem: others may read it \(mode 0640\).*chmod 600 /.*ca-key\.pem`},
		{"a certificate that is no PEM", func(t *testing.T, dir string) { rewrite(t, filepath.Join(dir, authorityFile), "hello") },
			`ca\.pem: holds no PEM certificate; .*weir ca --rotate`},
		{"a certificate that is cut", func(t *testing.T, dir string) {
			rewrite(t, filepath.Join(dir, authorityFile), string(encodePEM([]byte("cut"))))
		}, `ca\.pem: is damaged \(.*\); .*weir ca --rotate`},
		{"a leaf in the authority's place", func(t *testing.T, dir string) {
			c, err := openAuthority(t, dir).Certificate("localhost")
			if err != nil {
				t.Fatal(err)
			}
			rewrite(t, filepath.Join(dir, authorityFile), string(encodePEM(c.Certificate[0])))
		}, `ca\.pem: is no authority's certificate; .*weir ca --rotate`},
		{"a key that is no PEM", func(t *testing.T, dir string) { rewrite(t, filepath.Join(dir, keyFile), "hello") },
			`ca-key\.pem: holds no private key.*weir ca --rotate`},
		{"a key of another kind of file", func(t *testing.T, dir string) {
			rewrite(t, filepath.Join(dir, keyFile), string(encodePEM([]byte("no key"))))
		}, `ca-key\.pem: holds no private key.*weir ca --rotate`},
		{"another authority's key", copied(keyFile), `ca-key\.pem: is not the key of ca\.pem; .*weir ca --rotate`},
		{"another authority's certificate", copied(authorityFile), `ca-key\.pem: is not the key of ca\.pem; .*weir ca --rotate`},
		{"a key that is gone", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, keyFile)); err != nil {
				t.Fatal(err)
			}
		}, `ca-key\.pem: is missing; put it back, .*weir ca --rotate`},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "ca")
			old := openAuthority(t, dir).Fingerprint()
			row.harm(t, dir)
			_, err := OpenAuthority(dir)
			if err == nil || strings.Contains(err.Error(), "\n") || !regexp.MustCompile(`^certificate authority /.*`+row.want).MatchString(err.Error()) {
				t.Fatalf("error %v, want one line like %s", err, row.want)
			}
			a, kept, err := RotateAuthority(dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(kept); err != nil {
				t.Errorf("the old certificate is not kept: %v", err)
			}
			if got := openAuthority(t, dir).Fingerprint(); got != a.Fingerprint() || got == old {
				t.Errorf("rotated to %s from %s, and opened %s", a.Fingerprint(), old, got)
			}
		})
	}
}

func TestFolderThatOthersCanWriteToIsRefusedBeforeAnythingIsMade(t *testing.T) {
	dir := t.TempDir()
	chmod(t, dir, 0o777)
	for _, open := range []func() error{
		func() error { _, err := OpenAuthority(dir); return err },
		func() error { _, _, err := RotateAuthority(dir); return err },
	} {
		if err := open(); err == nil || !strings.Contains(err.Error(), "others may write into it (mode 0777); chmod 700 "+dir) {
			t.Errorf("error %v", err)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("made %v, %v", files, err)
	}
}

func TestFolderThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	rewrite(t, file, "")
	if _, err := OpenAuthority(filepath.Join(file, "ca")); err == nil || !strings.Contains(err.Error(), "not a directory") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
}

// A process that dies between its two files leaves a key, which the next takes.
func TestKeyWithoutACertificateIsTaken(t *testing.T) {
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeKey(dir, key); err != nil {
		t.Fatal(err)
	}
	if root := rootOf(t, openAuthority(t, dir).PEM()); !key.PublicKey.Equal(root.PublicKey) {
		t.Error("the key was replaced")
	}
}

func TestLeavesAreRenewedAndAnAuthorityExpires(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := openAuthority(t, dir)
		get := func() *x509.Certificate {
			c, err := a.Certificate("localhost")
			if err != nil {
				t.Fatal(err)
			}
			return c.Leaf
		}
		first := get()
		time.Sleep(leafValidity - 26*time.Hour)
		if get() != first {
			t.Error("renewed while it was good for a day and an hour")
		}
		time.Sleep(2 * time.Hour)
		second := get()
		if second == first || !second.NotAfter.After(first.NotAfter) {
			t.Errorf("valid until %s, then until %s: not renewed", first.NotAfter, second.NotAfter)
		}

		time.Sleep(time.Until(a.NotAfter()) - time.Hour)
		last := get()
		if !last.NotAfter.Equal(a.NotAfter()) || get() != last {
			t.Errorf("the last leaf ends on %s, and its authority on %s", last.NotAfter, a.NotAfter())
		}
		verify(t, rootOf(t, a.PEM()), last, "localhost")

		time.Sleep(2 * time.Hour)
		_, err := a.Certificate("localhost")
		_, opening := OpenAuthority(dir)
		for _, err := range []error{err, opening} {
			if err == nil || !strings.Contains(err.Error(), "ca.pem: expired on 20") || !strings.HasSuffix(err.Error(), "weir ca --rotate") {
				t.Errorf("error %v", err)
			}
		}
		if err := a.Rotate(); err != nil {
			t.Fatal(err)
		}
		verify(t, rootOf(t, a.PEM()), get(), "localhost")
	})
}

func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
