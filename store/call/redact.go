package call

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

const redacted = "[redacted]"

// secrets are the forms in which keys turn up in error messages and bodies.
// The first group of each is kept.
var secrets = []*regexp.Regexp{
	// Named: a header, a JSON field, an assignment, a query value.
	regexp.MustCompile(`(?i)((?:x-api-key|x-goog-api-key|api[-_ ]?key(?: provided)?|access[-_]?token|client[-_]?secret|password)\\?["']?\s*[:=]\s*\\?["']?)(?:[^\s"'\\&,;<>()\[\]{}]+)`),
	regexp.MustCompile(`(?i)([?&](?:key|token|sig|signature)=)(?:[^\s"'\\&,;<>()\[\]{}]+)`),
	regexp.MustCompile(`(?i)(\bkey=)(?:[^\s"'\\&,;<>()\[\]{}]+)`),
	// Schemes of Authorization.
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)[ +]+)(?:[A-Za-z0-9._~+/*=|-]{6,})`),
	// Tokens that say what they are. Stars and dots: providers quote keys
	// back with their middle masked, and the ends are still secret.
	regexp.MustCompile(`(\b(?:sk|pk|rk|xai|pplx|nvapi)-)(?:[A-Za-z0-9_*.-]{6,})`),
	regexp.MustCompile(`(\b(?:gsk|hf|r8|ghp|gho|github_pat|fw)_)(?:[A-Za-z0-9_*]{8,})`),
	regexp.MustCompile(`(\bAIza)(?:[A-Za-z0-9_*-]{8,})`),
	regexp.MustCompile(`(\bya29\.)(?:[A-Za-z0-9_*.-]{8,})`),
	regexp.MustCompile(`(\bAKIA)(?:[A-Z0-9]{8,})`),
	regexp.MustCompile(`(\beyJ)(?:[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?)`), // JWT
}

// Redact removes what looks like a key from text that is to be stored or
// shown: sk-… and its kin, Bearer and Basic credentials, values of x-api-key
// and the like, AIza…, key= query values, JWTs. The beginning that says what
// it was stays. What it gives is not changed by a second time.
func Redact(s string) string {
	for _, form := range secrets {
		s = form.ReplaceAllString(s, "${1}"+redacted)
	}
	return s
}

// storable makes text fit to be stored: secrets redacted, valid UTF-8, at most
// limit bytes.
func storable(s string, limit int) string {
	s = strings.ToValidUTF8(Redact(s), "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
