package generator

import "fmt"

// An answer may well take this long; at a plan's highest rate so many calls are
// then in flight.
const patience = 60

// filesForOthers are open files that are not the calls'.
const filesForOthers = 64

// Limits says where this machine's limits (open files, ephemeral ports) are too
// low for the plan; nil when they are not. The need is MaxInFlight, or a closed
// loop's users, or else as many calls as are in flight at the highest rate when
// answers take a minute. A proxy in this process takes two files more a call.
func (r *Run) Limits() (warnings []string) {
	rate := r.Plan.peakQPS()
	need := r.maxInFlight()
	if users := r.Plan.Users(); users > 0 && (need == 0 || users < need) {
		need = users
	}
	if need == 0 {
		need = int(rate * patience)
	}
	return limitWarnings(rate, need, maxFiles(), ephemeralPorts())
}

// limitWarnings compares; 0 files or ports is unknown.
func limitWarnings(rate float64, need, files, ports int) (warnings []string) {
	warn := func(have int, what, next string) {
		if have <= 0 || need <= have {
			return
		}
		w := fmt.Sprintf("%s: %d, and up to %s may be in flight", what, have, count(need, "call", "calls"))
		if rate > 0 {
			w = fmt.Sprintf("%s: at %.3g requests/s they run out when answers take over %.0f s", w, rate, float64(have)/rate)
		}
		warnings = append(warnings, w+"; "+next)
	}
	// A call through a proxy in this process holds three files: its own and both
	// of the proxy's.
	warn((files-filesForOthers)/3, "the open files allowed (ulimit -n) suffice for so many calls", "raise it, or bound the calls with --max-in-flight")
	warn(ports, "local ports to one address", "widen net.ipv4.ip_local_port_range, or bound the calls with --max-in-flight")
	return warnings
}
