package report

import (
	"fmt"
	"io"
	"strings"
)

// mostOnsets is how many onsets text tells. JSON has them all.
const mostOnsets = 5

// onsetLines tell where endpoints began to refuse, and what passed; empty when
// none refused.
func (r *Report) onsetLines() []string {
	var lines []string
	refusing := 0
	for _, e := range r.Endpoints {
		if e.Onset == nil {
			continue
		}
		if refusing++; refusing > mostOnsets {
			continue
		}
		name := "the endpoint"
		if len(r.Endpoints) > 1 {
			name = e.name()
		}
		switch {
		case e.Onset.After.V > 0:
			lines = append(lines, fmt.Sprintf("%s began to refuse at %s (first after %s; %s)", name, e.Onset.text(), e.Onset.after(), e.Onset.how()))
		case e.Onset.InFlight.V > 0:
			lines = append(lines, fmt.Sprintf("%s began to refuse at %s (the first of several sent together; %s)", name, e.Onset.text(), e.Onset.how()))
		default:
			lines = append(lines, fmt.Sprintf("%s refused its first call (%s)", name, e.Onset.how()))
		}
		if passed := e.Passed.text(); passed != "" {
			lines = append(lines, "  at most without a refusal: "+passed)
		}
	}
	if more := refusing - mostOnsets; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more began to refuse: weir report --json", more))
	}
	return lines
}

// onsets writes them as a paragraph.
func (r *Report) onsets(w io.Writer, s Style) {
	lines := r.onsetLines()
	if len(lines) > 0 {
		fmt.Fprintln(w)
	}
	for _, line := range lines {
		text := strings.TrimLeft(line, " ")
		pad := strings.Repeat(" ", len(line)-len(text))
		Paragraph(w, pad, text, len(pad), s)
	}
}

// name tells an endpoint from the others.
func (e *Endpoint) name() string {
	name := strings.TrimSpace(e.Upstream + " " + e.Model)
	if e.Key != "" {
		name += " key " + e.Key
	}
	if name == "" {
		return "the endpoint"
	}
	return name
}

// after says how long after the first request it came.
func (o *Onset) after() string {
	if o.After.V < 1 {
		return ms(N(o.After.V * 1000))
	}
	return seconds(o.After)
}

// how says as what the first refusal came.
func (o *Onset) how() string {
	if o.Status != 0 {
		return fmt.Sprintf("HTTP %d", o.Status)
	}
	return "the call was sent again"
}

// text writes what is known of a load.
func (l *Load) text() string {
	var parts []string
	if l.Calls.Known {
		parts = append(parts, fmt.Sprintf("%.1f calls/s", l.Calls.V))
	}
	if l.Tokens.Known {
		parts = append(parts, thousands(l.Tokens.V)+" tokens/min")
	}
	if l.InFlight.Known {
		parts = append(parts, whole(l.InFlight)+" in flight")
	}
	return strings.Join(parts, ", ")
}

// thousands writes a large figure so that it can be read: 83,000.
func thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
