package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir/proxy"
	"weir/proxy/client"
)

// caFlags are the flags of weir ca.
type caFlags struct {
	dir    string
	pem    bool
	json   bool
	rotate bool
	proxy  string
}

func (a *app) caCommand() *cobra.Command {
	var f caFlags
	c := &cobra.Command{
		Use:   "ca",
		Short: "Show weir's certificate authority, and how tools come to trust it",
		Long: `A tool without a setting for a base URL is measured through HTTPS_PROXY: weir then
stands in for the hosts that it measures, with certificates of an authority that
was made on this machine and whose key never leaves it. Shows where it is and
what each kind of tool needs to trust it. Nothing is installed anywhere.`,
		Example: `  weir ca
  weir ca --pem > weir.crt
  weir ca --json | jq -r .certificate
  weir ca --rotate`,
		Args: wantArgs(0, 0, ""),
		RunE: func(*cobra.Command, []string) error { return a.runCA(f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.dir, "dir", "", "folder of the authority (default: ca in the user's data folder)")
	fl.BoolVar(&f.pem, "pem", false, "print the certificate alone")
	fl.BoolVar(&f.json, "json", false, "where it is, and what to set for each kind of tool, as JSON")
	fl.BoolVar(&f.rotate, "rotate", false, "make a new key and certificate; the old ones are trusted for nothing more")
	fl.StringVar(&f.proxy, "proxy", "http://127.0.0.1:8484", "where weir proxy listens, in the lines to paste")
	onceOnly(fl, "rotate")
	return c
}

func (a *app) runCA(f caFlags) error {
	if f.pem && (f.rotate || f.json) {
		return usagef("ca: --pem excludes --rotate and --json")
	}
	if f.dir == "" {
		var err error
		if f.dir, err = caFolder(a.env); err != nil {
			return err
		}
	}
	if f.rotate {
		_, kept, err := proxy.RotateAuthority(f.dir)
		if err != nil {
			return err
		}
		if kept != "" {
			fmt.Fprintf(a.err, "the old certificate is kept as %s; take it out of what trusts it\n", kept)
		}
		fmt.Fprintln(a.err, "tools that read the files below trust the new one; where the old one was installed, install the new one, and start weir proxy anew")
	}
	authority, err := proxy.OpenAuthority(f.dir)
	if err != nil {
		return err
	}
	if f.pem {
		_, err := a.out.Write(authority.PEM())
		return err
	}
	bundle, err := proxy.Bundle(f.dir)
	if err != nil {
		return err
	}
	if f.json {
		enc := json.NewEncoder(a.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(caSaid{
			Schema: "weir.ca/1", Name: authority.Name(), Certificate: authority.Path(), Bundle: bundle,
			ValidUntil: authority.NotAfter().UTC(), Fingerprint: authority.Fingerprint(),
			Trust: pasted(client.Trust(f.proxy, authority.Path(), bundle)), Install: pasted(client.Install(authority.Path())),
		})
	}
	fmt.Fprintf(a.out, "%s\n  certificate  %s\n  with others  %s\n  valid until  %s\n  SHA-256      %s\n\n",
		authority.Name(), authority.Path(), bundle, authority.NotAfter().Format("2006-01-02"), authority.Fingerprint())
	fmt.Fprintln(a.out, "Use weir as a proxy, and trust it, for one command:")
	a.lines(client.Trust(f.proxy, authority.Path(), bundle))
	fmt.Fprintln(a.out, "\nOr have the whole system trust it, which weir never does by itself:")
	a.lines(client.Install(authority.Path()))
	fmt.Fprintln(a.out)
	fmt.Fprintln(a.err, "next: weir exec --door forward -- COMMAND   (which sets all of it)")
	return nil
}

// caSaid is what --json says.
type caSaid struct {
	Schema      string        `json:"schema"`
	Name        string        `json:"name"`
	Certificate string        `json:"certificate"` // file of the authority alone
	Bundle      string        `json:"bundle"`      // file of it and all others that programs trust
	ValidUntil  time.Time     `json:"valid_until"`
	Fingerprint string        `json:"sha256"`
	Trust       []pastedLines `json:"trust"`   // for one command
	Install     []pastedLines `json:"install"` // for a whole system
}

type pastedLines struct {
	Client string   `json:"client"`
	Lines  []string `json:"lines"`
}

func pasted(all []client.Lines) []pastedLines {
	var said []pastedLines
	for _, l := range all {
		said = append(said, pastedLines{l.Client, l.Text})
	}
	return said
}

// lines prints what to paste.
func (a *app) lines(all []client.Lines) {
	for _, lines := range all {
		for _, text := range lines.Text {
			fmt.Fprintf(a.out, "  # %s\n  %s\n", lines.Client, text)
		}
	}
}
