//go:build race

package generator

const raceDetector = true
