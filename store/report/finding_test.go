package report

import (
	"bytes"
	"testing"
)

func TestFindings(t *testing.T) {
	var b bytes.Buffer
	same := Finding{Mark: Bad, What: "The model is not there.", Next: "Name another."}
	first, second := same, same
	first.Cells, second.Cells = []string{"chat", "404", "no"}, []string{"messages", "404", "no"}
	Findings(&b, []string{"api", "status", "verdict"}, []Finding{
		{Cells: []string{"gemini", "200", "ok"}}, first, second,
		{Mark: Odd, Cells: []string{"responses", "200", "a verdict that is far too long for a screen as narrow as this"}, Notes: []string{"requests: 0 of 60 left\x1b[31m"}, Next: "Wait."},
		{Mark: Skipped, Cells: []string{"all"}},
	}, Style{Width: 60})
	b.WriteByte('\n')
	Findings(&b, nil, []Finding{{Cells: []string{"clock", "ok"}}, {Mark: Bad, Cells: []string{"base path", "无"}, What: "No API."}}, Style{Color: true})
	golden(t, "findings.txt", b.Bytes())
}
