package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"weir/store/report"
)

// usualWeir is where weir listens unless it is told otherwise.
const usualWeir = "http://127.0.0.1:8484"

// examineEnvironment looks at what tools read from the environment.
func (a *app) examineEnvironment(ctx context.Context, f doctorFlags) []report.Finding {
	var found []report.Finding
	for _, p := range vendors {
		if v, set := a.env(p.base); set && v != "" {
			found = append(found, a.examineBase(ctx, p, v))
		}
	}
	keys := 0
	for _, p := range vendors {
		for _, name := range p.keys {
			if v, set := a.env(name); set {
				keys++
				found = append(found, a.examineKey(p, name, v))
			}
		}
	}
	for _, name := range []string{"WEIR_API_KEY", f.keyEnv} {
		v, set := a.env(name)
		switch {
		case name == "" || variableOf(name).name != "":
		case set:
			keys++
			found = append(found, a.examineKey(vendor{}, name, v))
		case name == f.keyEnv:
			keys++
			found = append(found, report.Finding{Mark: report.Bad, Cells: []string{name, "not set"}, What: "--key-env names a variable that is not set.", Next: "export " + name + "=KEY, or name another."})
		}
	}
	if keys == 0 {
		found = append(found, report.Finding{Mark: report.Skipped, Cells: []string{"keys", "none is set; agents with a login of their own need none"}})
	}
	return append(found, a.examineProxies(f)...)
}

var (
	versionEnd     = regexp.MustCompile(`/v\d+(?:(?:alpha|beta)\d*)?/?$`)
	doubledVersion = regexp.MustCompile(`/v\d+(?:alpha|beta)?\d*/v\d+(?:alpha|beta)?\d*/?$`)
	endpointEnd    = regexp.MustCompile(`/(chat/completions|completions|responses|messages)/?$`)
)

// examineBase looks at the base URL that a provider's clients use.
func (a *app) examineBase(ctx context.Context, p vendor, v string) report.Finding {
	finding := func(m report.Mark, what, next string) report.Finding {
		return report.Finding{Mark: m, Cells: []string{p.base, bareURL(v)}, What: what, Next: next}
	}
	u, err := url.Parse(strings.TrimSpace(v))
	switch {
	case strings.TrimSpace(v) != v || strings.ContainsAny(v, "\"'` "):
		return finding(report.Bad, "There is white space or a quote in it.", "export "+p.base+"=URL, without them.")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return finding(report.Bad, "It is not a URL.", "Write it with http:// or https:// before the host.")
	case u.RawQuery != "":
		return finding(report.Bad, "A query in a base URL breaks the paths that clients put behind it.", "Leave out what stands behind the question mark.")
	case endpointEnd.MatchString(u.Path):
		return finding(report.Bad, "It ends in the path of one endpoint, which clients put behind it themselves.",
			"Take "+endpointEnd.FindString(u.Path)+" off its end.")
	case doubledVersion.MatchString(u.Path):
		return finding(report.Odd, "The API's version stands in it twice.", "Leave one of them out; weir mends it, others do not.")
	case loopback(u.Hostname()) && !answersAt(ctx, u):
		return finding(report.Bad, "Nothing listens at "+hostPort(u)+".", "Start weir there: weir proxy --listen "+hostPort(u)+" --upstream URL")
	}
	versioned := versionEnd.MatchString(u.Path)
	switch {
	case loopback(u.Hostname()): // weir accepts both
	case p.name == "OpenAI" && !versioned && hostOwner(u.Hostname()) == "OpenAI":
		return finding(report.Bad, "OpenAI's clients want the API's version at its end.", "End it with /v1.")
	case p.name == "OpenAI" && !versioned:
		return finding(report.Odd, "It does not end in a version, which OpenAI's clients do not add.", "End it with /v1 if the endpoint's paths begin so.")
	case p.name != "OpenAI" && versioned:
		return finding(report.Odd, "It ends in a version, which Claude Code, Gemini CLI and the providers' SDKs add once more; only the AI SDK wants it.",
			"Take "+strings.TrimSuffix(versionEnd.FindString(u.Path), "/")+" off its end, unless the tool is built on the AI SDK.")
	}
	return finding(report.Good, "", "")
}

// bareURL is a URL without what may be secret in it.
func bareURL(v string) string {
	u, err := url.Parse(strings.TrimSpace(v))
	if err != nil || u.Host == "" {
		return "set"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// answersAt says whether anything takes connections there.
func answersAt(ctx context.Context, u *url.URL) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", hostPort(u))
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// examineKey looks at the form of a key, without showing it.
func (a *app) examineKey(p vendor, name, v string) report.Finding {
	f := report.Finding{Cells: []string{name, fmt.Sprintf("set, %s", counted(len([]rune(v)), "character"))}}
	if f.What, f.Next = keyFlaw(name, v); f.What != "" {
		f.Mark = report.Bad
		if v == "" { // some leave it so on purpose
			f.Mark = report.Odd
		}
		return f
	}
	base, _ := a.env(p.base)
	u, err := url.Parse(base)
	ofOwn := base == "" || err == nil && hostOwner(u.Hostname()) == p.name
	ofWeir := err == nil && loopback(u.Hostname())
	switch owner := keyOwner(v); {
	case name == "ANTHROPIC_API_KEY" && strings.HasPrefix(v, "sk-ant-oat"):
		f.Mark, f.What, f.Next = report.Bad, "It is the token of a login, not an API key, and is refused as one.", "Put it into CLAUDE_CODE_OAUTH_TOKEN, or a key from the console here."
	case name == "ANTHROPIC_AUTH_TOKEN" && strings.HasPrefix(v, "sk-ant-api"):
		f.Mark, f.What, f.Next = report.Odd, "It is an API key, which Anthropic wants as x-api-key; this variable is sent as Authorization: Bearer.", "Put it into ANTHROPIC_API_KEY."
	case p.name != "" && owner != "" && owner != p.name && ofOwn:
		f.Mark, f.What, f.Next = report.Bad, "It is a key of "+owner+", which "+p.name+" refuses.", "Put "+p.name+"'s key here, or set "+p.base+" to where the key belongs."
	case p.name != "" && owner != "" && owner != p.name && ofWeir:
		f.Mark, f.What, f.Next = report.Odd, "It is a key of "+owner+".", "See that the weir at "+p.base+" sends it on to "+owner+"."
	}
	if other, _ := a.env("ANTHROPIC_AUTH_TOKEN"); f.Mark == report.Good && name == "ANTHROPIC_API_KEY" && other != "" {
		f.Mark, f.What, f.Next = report.Odd, "ANTHROPIC_AUTH_TOKEN is set too, and Claude Code sends both; endpoints differ in which they believe.", "Unset the one that is not meant."
	}
	return f
}

// examineProxies looks at the variables that send tools through a proxy.
func (a *app) examineProxies(f doctorFlags) []report.Finding {
	weir, _ := url.Parse(usualWeir)
	if f.proxy != "" {
		weir, _ = url.Parse(f.proxy) // which was parsed before
	}
	toWeir, toLoopback := false, false // base URLs
	for _, p := range vendors {
		base, _ := a.env(p.base)
		if u, err := url.Parse(base); err == nil && u.Host != "" {
			toWeir = toWeir || hostPort(u) == hostPort(weir)
			toLoopback = toLoopback || loopback(u.Hostname())
		}
	}
	var found []report.Finding
	proxied := ""
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		v, where := a.either(name)
		if v == "" {
			continue
		}
		proxied = where
		address := v
		if !strings.Contains(v, "://") {
			address = "http://" + v // as curl and others read it
		}
		f := report.Finding{Cells: []string{where, bareURL(address)}}
		u, err := url.Parse(address)
		switch {
		case err != nil || u.Host == "":
			f.Mark, f.What, f.Next = report.Bad, "It is not the URL of a proxy.", "export "+where+"=http://HOST:PORT, or unset it."
		case hostPort(u) == hostPort(weir) && toWeir:
			f.Mark, f.What, f.Next = report.Odd, "It points at weir itself, and so does a base URL: tools ask weir for the way to weir.", "Unset "+where+"; the base URL is enough."
		case hostPort(u) == hostPort(weir):
			f.Mark, f.What, f.Next = report.Odd, "It points at weir itself: calls of tools that trust weir's CA are measured, those of others fail, and the rest is tunnelled.", "Let the tools trust it, as weir ca shows; or unset it and point their base URL at weir."
		}
		found = append(found, f)
	}
	if proxied == "" {
		return found
	}
	v, where := a.either("NO_PROXY")
	n := report.Finding{Cells: []string{where, v}}
	if !exemptsWeir(v) {
		if v == "" {
			n.Cells = []string{"NO_PROXY", "not set"}
		}
		n.Mark = report.Odd
		if toLoopback {
			n.Mark = report.Bad
		}
		n.What, n.Next = proxied+" is set and 127.0.0.1 is not exempt: tools look for weir behind that proxy, and do not find it.", "export NO_PROXY=127.0.0.1,localhost"
		if v != "" {
			n.Next += "," + v
		}
	}
	return append(found, n)
}

// either reads a variable that tools read in both spellings, and says in which
// it stands.
func (a *app) either(name string) (value, where string) {
	for _, where := range []string{name, strings.ToLower(name)} {
		if v, _ := a.env(where); v != "" {
			return v, where
		}
	}
	return "", name
}

// exemptsWeir says whether a NO_PROXY keeps 127.0.0.1 from the proxy.
func exemptsWeir(list string) bool {
	weir := netip.MustParseAddr("127.0.0.1")
	for _, entry := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		host, _, err := net.SplitHostPort(entry)
		if err != nil {
			host = entry
		}
		net, err := netip.ParsePrefix(host)
		if host == "*" || host == "127.0.0.1" || err == nil && net.Contains(weir) {
			return true
		}
	}
	return false
}
