package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/store/call"
	"weir/store/report"
)

func TestWhatFailedIsTroubleUntilItWorksAgain(t *testing.T) {
	now := time.Now()
	here := lane{"h", "/v1/messages", "m"}
	failed := incident{outcome: call.Auth, status: 401, what: "W", next: "N", started: now.Add(-time.Minute), id: "aaaaaaaa", lane: here}
	with := func(change func(*incident)) incident {
		i := failed
		change(&i)
		return i
	}
	for _, row := range []struct {
		sentence string
		incident incident
		worked   map[lane]time.Time
		works    bool
		want     report.Mark
	}{
		{"nothing worked since", failed, nil, false, report.Bad},
		{"it worked before", failed, map[lane]time.Time{here: now.Add(-time.Hour)}, false, report.Bad},
		{"another model worked since", failed, map[lane]time.Time{{"h", "/v1/messages", "n"}: now}, false, report.Bad},
		{"the same worked since", failed, map[lane]time.Time{here: now}, false, report.Odd},
		{"the endpoint was found to work", failed, nil, true, report.Odd},
		{"the client left", with(func(i *incident) { i.outcome = call.ClientGone }), nil, false, report.Odd},
		{"it was only odd", with(func(i *incident) { i.outcome = call.OK }), nil, false, report.Odd},
		{"it asked no model", with(func(i *incident) { i.beside = true }), nil, false, report.Odd},
	} {
		r := &recent{recorded: true, calls: 1, worked: row.worked, troubles: groupIncidents(map[[16]byte]incident{{1}: row.incident})}
		if got := r.findings(row.works); len(got) != 1 || got[0].Mark != row.want || got[0].What != "W" || got[0].Next != "N" {
			t.Errorf("%s: %+v, want mark %d", row.sentence, got, row.want)
		}
	}
}

func TestIncidentsAreGroupedByTheirNextStep(t *testing.T) {
	now := time.Now()
	incidents := map[[16]byte]incident{}
	for i := range 12 {
		incidents[[16]byte{byte(i)}] = incident{outcome: call.RateLimited, status: 429, what: fmt.Sprint("wait ", i), next: "slow down", started: now.Add(time.Duration(i) * time.Second), id: fmt.Sprint(i)}
	}
	for i := range 7 {
		incidents[[16]byte{100, byte(i)}] = incident{outcome: call.ServerError, status: 500 + i, what: "x", next: "y", started: now, id: "s"}
	}
	r := &recent{recorded: true, flag: "x.db", calls: 30, troubles: groupIncidents(incidents)}
	found := r.findings(false)
	if len(found) != mostTroubles+1 {
		t.Fatalf("%d findings", len(found))
	}
	if diff := cmp.Diff([]string{"rate_limited 429", "12 calls"}, found[0].Cells[:2]); diff != "" || found[0].What != "wait 11" {
		t.Error(diff, found[0].What)
	}
	if diff := cmp.Diff([]string{"2 more kinds: weir report since:1h --db x.db"}, found[mostTroubles].Cells); diff != "" {
		t.Error(diff)
	}
}
