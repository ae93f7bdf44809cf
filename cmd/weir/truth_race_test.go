//go:build race

package main

// raceFactor widens the bounds on time, and only those: under the race
// detector every read, write and handler takes several times as long, and what
// is measured is the detector.
const raceFactor = 10
