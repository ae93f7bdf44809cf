//go:build !race

package generator

const raceDetector = false
