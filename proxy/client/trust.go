package client

import "strings"

// Trust gives what to set so that each client uses a proxy and trusts its
// certificate authority. caFile holds the authority's certificate alone, bundle
// the system's beside it: some clients take a file in the place of what they
// trust, others in addition.
func Trust(proxyURL, caFile, bundle string) []Lines {
	caFile, bundle = Quoted(caFile), Quoted(bundle)
	through := "HTTPS_PROXY=" + proxyURL + " NO_PROXY=127.0.0.1,localhost "
	return []Lines{
		{"Claude Code, opencode, Gemini CLI", []string{through + "NODE_EXTRA_CA_CERTS=" + caFile + " claude"}},
		{"Codex", []string{through + "CODEX_CA_CERTIFICATE=" + caFile + " codex"}},
		{"Node programs and SDKs (Node 24, or 22.21 and later)", []string{through + "NODE_USE_ENV_PROXY=1 NODE_EXTRA_CA_CERTS=" + caFile + " node app.mjs"}},
		{"Python programs and SDKs", []string{through + "SSL_CERT_FILE=" + bundle + " REQUESTS_CA_BUNDLE=" + bundle + " python app.py"}},
		{"Go, Rust and others that use OpenSSL's variable", []string{through + "SSL_CERT_FILE=" + bundle + " COMMAND"}},
		{"curl", []string{through + "CURL_CA_BUNDLE=" + bundle + " curl …"}},
	}
}

// Install gives the commands that have a whole system trust an authority.
func Install(caFile string) []Lines {
	windows := `"` + caFile + `"`
	caFile = Quoted(caFile)
	return []Lines{
		{"Debian, Ubuntu", []string{"sudo cp " + caFile + " /usr/local/share/ca-certificates/weir.crt && sudo update-ca-certificates"}},
		{"Fedora, RHEL", []string{"sudo trust anchor " + caFile}},
		{"macOS", []string{"sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain " + caFile}},
		{"Windows", []string{"certutil -addstore -user Root " + windows}},
	}
}

// Quoted is a word as a shell takes it whole: as it is, or within quotes.
func Quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r > 0x7f || strings.ContainsRune("/._-+:@%,=", r)
	}
	if word != "" && strings.TrimLeftFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
