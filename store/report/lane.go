package report

import (
	"fmt"
	"strings"
	"time"

	"weir/store/call"
)

// laneLines say what weir's shaper did with one call, each as a name and a
// text; there are none where no lane had to do with it.
func laneLines(c *call.Call) [][2]string {
	var lines [][2]string
	if c.Lane != "" {
		text := []string{plain(c.Lane)}
		if c.LaneLimit != "" {
			text = append(text, "bound by "+plain(c.LaneLimit))
		}
		if c.QueuePosition > 0 {
			text = append(text, fmt.Sprintf("came at place %d of its queue", c.QueuePosition))
		}
		lines = append(lines, [2]string{"lane", strings.Join(text, ", ")})
	}
	if text := reservedText(c); text != "" {
		lines = append(lines, [2]string{"reserved", text})
	}
	if c.Held > 0 {
		text := duration(c.Held, true) + " of its waits in the lane, by the endpoint's word"
		if c.HoldReason != "" {
			text += ": " + plain(c.HoldReason)
		}
		lines = append(lines, [2]string{"held", text})
	}
	if c.Refusals > 0 {
		then := "after which weir sent it again"
		if c.HeldToTheEnd() {
			then = "after the last of which weir held it, and did not send it again"
		}
		lines = append(lines, [2]string{"refusals", fmt.Sprintf("%d by the endpoint, %s", c.Refusals, then)})
	}
	return lines
}

// reservedText sets what a call's lane reserved of tokens against what was
// used; empty where nothing was reserved.
func reservedText(c *call.Call) string {
	var parts []string
	for _, t := range []struct {
		name           string
		reserved, used int64
		has, known     bool
	}{
		{"input", c.ReservedInput.N, c.Usage.Input.N, c.ReservedInput.Known, c.Usage.Input.Known},
		{"output", c.ReservedOutput.N, c.Usage.Output.N, c.ReservedOutput.Known, c.Usage.Output.Known},
	} {
		if t.has {
			parts = append(parts, fmt.Sprintf("%s %d, used %s", t.name, t.reserved, known(t.used, t.known)))
		}
	}
	return strings.Join(parts, "; ")
}

// laneCells are a call's cells under "queued" and "lane" in a list.
func laneCells(c *call.Call) []string {
	lane := absent
	if c.Lane != "" {
		lane = plain(c.Lane)
		if c.LaneLimit != "" {
			lane += ": " + plain(c.LaneLimit)
		}
		if c.Refusals > 0 {
			lane += ", refused " + times(c.Refusals) // which "queued" has no part of
		}
	}
	return []string{duration(queued(c)), lane}
}

// times writes how often: once, twice, 3 times.
func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// queued is a call's time in the queue as the account has it.
func queued(c *call.Call) (time.Duration, bool) {
	parts, ok := c.Account()
	_, known := c.Queued()
	return parts.Queue, ok && known
}

// laneFields are a call's fields behind laneHead, empty where nothing is known.
func laneFields(c *call.Call) []string {
	held := ""
	if c.Held > 0 {
		held = field(Ms(c.Held))
	}
	return []string{plain(c.Lane), plain(c.LaneLimit), positive(c.QueuePosition), field(msIf(queued(c))), held, positive(c.Refusals)}
}

const laneHead = "\tlane\tlane_limit\tqueue_position\tqueued_ms\theld_ms\trefusals"
