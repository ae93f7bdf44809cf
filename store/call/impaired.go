package call

import "strings"

// notApplied stands behind what was meant for a call and did not befall it.
const notApplied = " (not applied: "

// NotApplied is how Impaired says that something was meant for a call and did
// not befall it: "cut@7 (not applied: status 401)".
func NotApplied(what, why string) string { return what + notApplied + why + ")" }

// Worsened says whether any impairment befell the call: then it is no measure of
// the endpoint. One for which all that was meant could not be applied is.
func (c *Call) Worsened() bool { return c.befell() != "" }

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
