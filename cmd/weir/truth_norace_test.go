//go:build !race

package main

// raceFactor widens the bounds on time under the race detector.
const raceFactor = 1
