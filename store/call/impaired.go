package call

import "strings"

// notApplied stands behind what was meant for a call and did not befall it.
const notApplied = " (not applied: "

// NotApplied is how Impaired says that something was meant for a call and did
// not befall it: "cut@7 (not applied: status 401)".
func NotApplied(what, why string) string { return what + notApplied + why + ")" }

// befell are the impairments that befell the call.
func (c *Call) befell() string {
	var all []string
	for _, text := range c.Impaired {
		if !strings.Contains(text, notApplied) {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}
