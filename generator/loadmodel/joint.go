package loadmodel

import (
	"math/rand/v2"
	"slices"
	"sort"
	"time"
)

// Joint is a scenario's requests as rows of numbers that belong together, as
// recorded ones do. Each row is one request, and all are equally frequent among
// the scenario's requests, however long the sessions are that they come in.
type Joint struct {
	Rows     []JointRow
	HasTurns bool // rows say their session's turns; else Scenario.Turns does
	HasThink bool // rows say the time before them; else Scenario.ThinkSeconds does

	lengths []length // of sessions; empty without HasTurns
}

// JointRow is one request.
type JointRow struct {
	Input  int           // tokens of the whole prompt
	Output int           // tokens at most
	Turns  int           // of the session that the request belongs to; 0 without HasTurns
	Think  time.Duration // between the end of the turn before and this one; 0 without HasThink
}

// length is what rows say of sessions of one length.
type length struct {
	turns int
	rows  []JointRow
	upTo  float64 // sessions of this length and those before it, in sessions that use each row once
}

// index sorts the rows by their sessions' lengths. n rows of sessions of k
// turns are the requests of n/k sessions.
func (j *Joint) index() {
	if !j.HasTurns {
		return
	}
	byTurns := map[int][]JointRow{}
	for _, row := range j.Rows {
		byTurns[row.Turns] = append(byTurns[row.Turns], row)
	}
	var sessions float64
	for turns, rows := range byTurns {
		j.lengths = append(j.lengths, length{turns: turns, rows: rows})
	}
	slices.SortFunc(j.lengths, func(a, b length) int { return a.turns - b.turns })
	for i := range j.lengths {
		l := &j.lengths[i]
		sessions += float64(len(l.rows)) / float64(l.turns)
		l.upTo = sessions
	}
}

// requestsPerSession is the mean number of turns.
func (j *Joint) requestsPerSession() float64 {
	return float64(len(j.Rows)) / j.lengths[len(j.lengths)-1].upTo
}

// DrawOne draws one row.
func (j *Joint) DrawOne(rng *rand.Rand) JointRow { return j.Rows[rng.IntN(len(j.Rows))] }

// DrawSession draws the rows of one session, in no order. With HasTurns they are
// of sessions of one length, as many as that; else there are as many as turns
// says.
func (j *Joint) DrawSession(rng *rand.Rand, turns int) []JointRow {
	from := j.Rows
	if j.HasTurns {
		at := rng.Float64() * j.lengths[len(j.lengths)-1].upTo
		i := sort.Search(len(j.lengths)-1, func(i int) bool { return at < j.lengths[i].upTo })
		from, turns = j.lengths[i].rows, j.lengths[i].turns
	}
	drawn := make([]JointRow, turns)
	for i := range drawn {
		drawn[i] = from[rng.IntN(len(from))]
	}
	return drawn
}

// joint reads [[input, output], …], [[input, output, turns], …] or [[input,
// output, turns, think], …].
func (r *reader) joint(n node, what string) *Joint {
	const shape = "[[6955, 350], [120, 44]]"
	if n.kind != "array" || len(n.items) == 0 {
		r.fail(n.at, "%s is %s; want a list of rows of input and output tokens, and perhaps turns and seconds to think, as %s", what, describe(n), shape)
		return nil
	}
	j := &Joint{Rows: make([]JointRow, 0, len(n.items))}
	for _, item := range n.items {
		columns := len(item.items)
		if item.kind != "array" || columns < 2 || columns > 4 {
			r.fail(item.at, "%s: want rows of 2 to 4 numbers, input and output tokens, turns, seconds to think, as %s", what, shape)
			return nil
		}
		if first := len(n.items[0].items); columns != first {
			r.fail(item.at, "%s: a row has %d numbers, and the first row %d; want as many in all", what, columns, first)
			return nil
		}
		row := JointRow{
			Input:  int(r.value(item.items[0], what+": input", tokens)),
			Output: int(r.value(item.items[1], what+": output", tokens)),
		}
		if columns > 2 {
			row.Turns, j.HasTurns = int(r.value(item.items[2], what+": turns", turns)), true
		}
		if columns > 3 {
			think := r.value(item.items[3], what+": think", thinking)
			row.Think, j.HasThink = time.Duration(think*float64(time.Second)), true
		}
		if r.err != nil {
			return nil
		}
		j.Rows = append(j.Rows, row)
	}
	j.index()
	return j
}
