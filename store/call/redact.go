package call

import "regexp"

// secrets are the forms that keys take in the texts of errors.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`\b(?:sk|pk|rk|sess|gsk|xai|nvapi|hf)[-_][A-Za-z0-9_\-]{6,}`),
	regexp.MustCompile(`\bAIza[0-9A-Za-z_\-]{10,}`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)?`),
	regexp.MustCompile(`(?i)\bbearer\s+[A-Za-z0-9._~+/\-]{6,}=*`),
	regexp.MustCompile(`(?i)((?:x-api-key|x-goog-api-key|api[-_]?key|access_token|authorization)["']?\s*[:=]\s*["']?)[^\s"'&,}]{6,}`),
	regexp.MustCompile(`(?i)([?&]key=)[^\s"'&]+`),
}

// Redact replaces what looks like a key or token in a text that is to be kept
// or shown.
func Redact(s string) string {
	for _, re := range secrets {
		replacement := "[redacted]"
		if re.NumSubexp() > 0 {
			replacement = "${1}[redacted]"
		}
		s = re.ReplaceAllString(s, replacement)
	}
	return s
}
