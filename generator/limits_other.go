//go:build !unix

package generator

// These cannot be told on this system: 0.

func maxFiles() int       { return 0 }
func ephemeralPorts() int { return 0 }

type cpuClock struct{}

func startCPU() cpuClock          { return cpuClock{} }
func (c cpuClock) share() float64 { return 0 }
