package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/shaper"
	"weir/store/report"
)

// laneColumn is a column of the table for people.
type laneColumn struct {
	report.Column
	rank int // 0: it always stands; the others come in this order, as far as there is room
	cell func(laneState) string
}

// laneState is a lane at a moment.
type laneState struct {
	shaper.LaneState
	kind laneKind
	at   time.Time
}

var laneColumns = []laneColumn{
	{report.Column{Head: "lane", Left: true}, 0, func(l laneState) string { return l.Name }},
	{report.Column{Head: "limit", Left: true}, 2, func(l laneState) string { return orDash(l.Limit) }},
	{report.Column{Head: "in flight"}, 0, laneState.flying},
	{report.Column{Head: "waiting"}, 0, func(l laneState) string { return strconv.Itoa(l.Waiting) }},
	{report.Column{Head: "oldest"}, 1, laneState.oldest},
	{report.Column{Head: "calls/s"}, 0, laneState.rate},
	{report.Column{Head: "bound by", Left: true}, 0, func(l laneState) string { return orDash(l.Full) }},
	{report.Column{Head: "held until", Left: true}, 0, laneState.heldUntil},
	{report.Column{Head: "because", Left: true}, 3, laneState.because},
	{report.Column{Head: "tokens left"}, 6, laneState.tokensLeft},
	{report.Column{Over: "calls", Head: "admitted"}, 7, func(l laneState) string { return strconv.FormatInt(l.Admitted, 10) }},
	{report.Column{Over: "calls", Head: "refused"}, 4, func(l laneState) string { return strconv.FormatInt(l.Refused, 10) }},
	{report.Column{Over: "calls", Head: "left"}, 8, func(l laneState) string { return strconv.FormatInt(l.Left, 10) }},
	{report.Column{Over: "calls", Head: "429"}, 5, func(l laneState) string { return strconv.FormatInt(l.EndpointRefused, 10) }},
}

// calm is 0 for a lane that is not to be missed, and more for others.
func (l laneState) calm() int {
	switch {
	case l.kind == namedLane || l.Waiting > 0 || l.HeldMS > 0:
		return 0
	case l.InFlight > 0:
		return 1
	}
	return 2
}

func (l laneState) flying() string {
	if l.MostInFlight == nil {
		return strconv.Itoa(l.InFlight)
	}
	return fmt.Sprintf("%d of %d", l.InFlight, *l.MostInFlight)
}

func (l laneState) oldest() string {
	if l.Waiting == 0 {
		return noFigure
	}
	return waited(l.OldestMS)
}

// heldUntil is a time of the day, which stands still while the lanes are
// followed; it is never before the lane opens.
func (l laneState) heldUntil() string {
	if l.HeldMS <= 0 {
		return noFigure
	}
	wait := time.Duration(l.HeldMS * float64(time.Millisecond))
	layout := "15:04:05"
	if wait > 12*time.Hour {
		layout = "Jan 2 15:04"
	}
	return l.at.Add(wait + time.Second - 1).Format(layout)
}

func (l laneState) because() string {
	if l.HeldMS <= 0 {
		return noFigure
	}
	return orDash(l.HoldReason)
}

func (l laneState) rate() string {
	if l.PerS == nil {
		return noFigure
	}
	return strconv.FormatFloat(*l.PerS, 'f', 1, 64)
}

func (l laneState) tokensLeft() string {
	if l.TokensLeft == nil {
		return noFigure
	}
	return strconv.FormatFloat(*l.TokensLeft, 'f', 0, 64)
}

// laneView is how much of the lanes is shown to people.
type laneView struct {
	columns int  // that a line may take
	lines   int  // that there may be; 0: as many as it takes
	all     bool // each idle lane too
}

// laneLines is the table for people; empty without a lane. What a rule names
// comes first, then endpoints, then the lanes of each. Columns that do not fit or
// have nothing in them are left out; so are idle lanes of those that come with
// their calls, and of the others those from which nobody waits, where there are
// too many.
func laneLines(said lanesSaid, v laneView) []string {
	var lanes []laneState
	idle := 0
	for _, l := range said.Lanes {
		kind := kindOf(l)
		if !v.all && kind != namedLane && l.InFlight == 0 && l.Waiting == 0 && l.HeldMS <= 0 {
			idle++
			continue
		}
		lanes = append(lanes, laneState{l, kind, said.At})
	}
	slices.SortStableFunc(lanes, func(a, b laneState) int { return cmp.Compare(a.kind, b.kind) })
	more := 0
	const around = 3 // two lines of heads and the one below
	if room := max(v.lines-around, 1); v.lines > 0 && len(lanes) > room {
		lanes, more = leastCalm(lanes, room), len(lanes)-room
	}
	var lines, left []string
	if len(lanes) > 0 {
		lines = laneTable(lanes, v.columns)
	}
	if more > 0 {
		left = append(left, fmt.Sprintf("%d more", more))
	}
	if idle > 0 {
		left = append(left, fmt.Sprintf("%d idle", idle))
	}
	if len(left) > 0 {
		lines = append(lines, "+ "+strings.Join(left, ", ")+": weir lanes --all")
	}
	return lines
}

// leastCalm gives so many lanes that are not to be missed, in their order.
func leastCalm(lanes []laneState, room int) []laneState {
	places := make([]int, len(lanes))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(lanes[a].calm(), lanes[b].calm()) })
	places = places[:room]
	slices.Sort(places)
	kept := make([]laneState, room)
	for i, place := range places {
		kept[i] = lanes[place]
	}
	return kept
}

// laneKind says where a lane comes from, in the order in which lanes are shown.
type laneKind int

const (
	namedLane    laneKind = iota // by a rule
	endpointLane                 // by the endpoint of a call
	eachLane                     // by a rule with each, for a call
)

func kindOf(l shaper.LaneState) laneKind {
	switch {
	case l.Each:
		return eachLane
	case l.Limit == "":
		return endpointLane
	}
	return namedLane
}

// laneTable draws lanes with as many columns as fit.
func laneTable(lanes []laneState, columns int) []string {
	shown := make([]bool, len(laneColumns))
	for i, c := range laneColumns {
		shown[i] = c.rank == 0
	}
	for rank := range len(laneColumns) {
		i := slices.IndexFunc(laneColumns, func(c laneColumn) bool { return c.rank == rank+1 })
		if i < 0 || !slices.ContainsFunc(lanes, func(l laneState) bool { return laneColumns[i].cell(l) != noFigure }) {
			continue
		}
		shown[i] = true
		shown[i] = widest(drawLanes(lanes, shown, columns)) <= columns
	}
	names := 0
	for _, l := range lanes {
		names = max(names, screenWidth.StringWidth(l.Name))
	}
	over := max(widest(drawLanes(lanes, shown, names))-columns, 0)
	return drawLanes(lanes, shown, max(names-over, shortestName))
}

// shortestName is how far the names of lanes are cut, in columns of a screen.
const shortestName = 10

func widest(lines []string) int {
	most := 0
	for _, line := range lines {
		most = max(most, screenWidth.StringWidth(line))
	}
	return most
}

// drawLanes draws those of laneColumns that are shown, with names of at most so
// many columns of a screen.
func drawLanes(lanes []laneState, shown []bool, longest int) []string {
	var columns []report.Column
	rows := make([][]string, len(lanes))
	for i, c := range laneColumns {
		if !shown[i] {
			continue
		}
		columns = append(columns, c.Column)
		for n, l := range lanes {
			cell := c.cell(l)
			if i == 0 {
				cell = screenWidth.Truncate(cell, longest, "…")
			}
			rows[n] = append(rows[n], cell)
		}
	}
	var b bytes.Buffer
	report.Table(&b, columns, rows)
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// noFigure stands where nothing is known or nothing is to be said.
const noFigure = "–"

func orDash(text string) string {
	if text == "" {
		return noFigure
	}
	return text
}

// waited writes milliseconds as people read them.
func waited(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
