package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/generator/loadmodel"
	"weir/proxy/wire"
	"weir/store/report"
)

// otherTrades are in the names of models that do not chat.
var otherTrades = []string{"embed", "whisper", "tts", "audio", "dall-e", "image", "imagen", "veo", "sora", "moderation", "realtime", "transcribe",
	"rerank", "ocr", "guard", "search", "instruct", "davinci", "babbage", "computer-use", "deep-research", "aqa", "live"}

// smallNames are in the names of models that cost little.
var smallNames = []string{"nano", "mini", "haiku", "flash-lite", "flash", "lite", "small", "sim"}

// modelFor is the model to ask for: --model, or of those that are listed one
// that an API is likely to serve and that costs little. Empty when none is
// known.
func (v *visit) modelFor(api wire.API) string {
	if v.f.model != "" {
		return v.f.model
	}
	family := map[wire.API]string{wire.Messages: "claude", wire.Gemini: "gemini"}[api]
	best, points := "", -1
	for _, name := range v.models {
		lower := strings.ToLower(name)
		n := 0
		if family != "" && strings.Contains(lower, family) || family == "" && !strings.Contains(lower, "claude") && !strings.Contains(lower, "gemini") {
			n += 100
		}
		if !slices.ContainsFunc(otherTrades, func(t string) bool { return strings.Contains(lower, t) }) {
			n += 50
		}
		if i := slices.IndexFunc(smallNames, func(s string) bool { return strings.Contains(lower, s) }); i >= 0 {
			n += len(smallNames) - i
		}
		if n > points {
			best, points = name, n
		}
	}
	return best
}

// modelFinding tells what is listed, and whether the model asked for is.
func (v *visit) modelFinding() report.Finding {
	f := report.Finding{Cells: []string{"models", fmt.Sprintf("%d listed", len(v.models))}}
	switch {
	case v.f.model == "" && len(v.models) == 0:
		f.Mark, f.What, f.Next = report.Bad, "The endpoint lists no model, and none is named.", "Name one with --model; in a gateway, see which models the key's group has."
	case len(v.models) == 0:
		f.Mark = report.Skipped
	case v.f.model == "":
		f.Cells[1] += "; --model names the one to ask for"
	case slices.Contains(v.models, v.f.model):
		f.Cells[1] += fmt.Sprintf(", %s among them", v.f.model)
	default:
		f.Mark, f.What, f.Next = report.Odd, fmt.Sprintf("%q is not among them.", v.f.model), v.nearestModels(v.f.model)
	}
	return f
}

// mostNamed is how many models are offered in the place of an unknown one.
const mostNamed = 5

// nearestModels names those that are listed in the place of one that was
// refused, the likeliest first.
func (v *visit) nearestModels(refused string) string {
	near := slices.DeleteFunc(slices.Clone(v.models), func(name string) bool { return name == refused })
	switch {
	case len(near) == 0 && len(v.models) > 0:
		return "The endpoint lists it, and no other: its list is not of what it serves. Ask its operator, or name another with --model."
	case len(near) == 0:
		return "Name one that the endpoint has with --model."
	case len(near) == 1:
		return "The only other one is " + near[0] + "."
	}
	asked := strings.ToLower(refused)
	distance := func(name string) int {
		name = strings.ToLower(name)
		d := 2 * loadmodel.Slips(asked, name)
		if strings.Contains(name, asked) || strings.Contains(asked, name) {
			d /= 4 // a date or a vendor is missing, or too many
		}
		return d
	}
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
	more := ""
	if n := len(near) - mostNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "The nearest are " + strings.Join(near[:min(len(near), mostNamed)], ", ") + more + "."
}
