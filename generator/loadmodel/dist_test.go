package loadmodel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// within cuts a distribution.
func within(min, max float64, d Dist) Dist {
	d.Min, d.Max, d.HasMin, d.HasMax = min, max, true, true
	return d
}

var azurePrompts = [][2]float64{{0, 39}, {0.5, 1020}, {0.99, 4142}, {1, 14050}}

var dists = map[string]Dist{
	"uniform":               Range(50, 200),
	"normal":                {Kind: "normal", Average: 500, StdDev: 300},
	"normal, cut":           within(100, 900, Dist{Kind: "normal", Average: 500, StdDev: 300}),
	"normal, far tail":      within(800, 900, Dist{Kind: "normal", Average: 500, StdDev: 100}),
	"lognormal":             {Kind: "lognormal", Median: 300, Sigma: 1},
	"lognormal, cut":        within(4000, 16000, Dist{Kind: "lognormal", Median: 8000, Sigma: 0.3}),
	"exponential":           {Kind: "exponential", Average: 400},
	"exponential, cut":      within(10, 1500, Dist{Kind: "exponential", Average: 400}),
	"zipf":                  within(1, 1000, Dist{Kind: "zipf", Exponent: 1.2}),
	"zipf, long and flat":   within(10, 1_000_000, Dist{Kind: "zipf", Exponent: 0.5}),
	"quantiles":             {Kind: "quantiles", Points: azurePrompts},
	"quantiles, cut":        within(100, 4000, Dist{Kind: "quantiles", Points: azurePrompts}),
	"quantiles from 0":      {Kind: "quantiles", Points: [][2]float64{{0, 0}, {0.5, 10}, {1, 1000}}},
	"quantiles with a step": {Kind: "quantiles", Points: [][2]float64{{0, 1}, {0.4, 5}, {0.7, 5}, {1, 90}}},
}

func TestDrawsFollowTheirDistribution(t *testing.T) {
	for name, d := range dists {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			draws := make([]float64, 100_000)
			var sum float64
			for i := range draws {
				draws[i] = d.Draw(rng)
				sum += draws[i]
			}
			slices.Sort(draws)
			if draws[0] < d.lowest() || draws[len(draws)-1] > d.highest() {
				t.Errorf("drew from %g to %g", draws[0], draws[len(draws)-1])
			}
			theory := theoryOf(d)
			for _, p := range []float64{0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999} {
				// The rank of a quantile among n draws has a deviation of
				// √(p(1−p)/n): five of these, which one test in a million
				// leaves by chance, bound the value.
				off := 5 * math.Sqrt(p*(1-p)/float64(len(draws)))
				got, want := draws[int(p*float64(len(draws)))], quantileOf(theory, d, p)
				least, most := quantileOf(theory, d, p-off), quantileOf(theory, d, p+off)
				if got < least || got > most {
					t.Errorf("p%g of the draws is %.3f, want %.3f, and by chance %.3f to %.3f", 100*p, got, want, least, most)
				}
				// For most that is less than 1 %. In steep tails chance allows
				// more, and the distribution's own quantile is held to it.
				if exact := d.Quantile(p); math.Abs(exact-want) > 0.01*want {
					t.Errorf("p%g is %.3f, want %.3f", 100*p, exact, want)
				}
			}
			if got, want := sum/1e5, d.Mean(); math.Abs(got-want) > 0.02*want {
				t.Errorf("the draws' mean is %.2f, the distribution's %.2f", got, want)
			}
		})
	}
}

// theoryOf is the probability that a draw is x or less, cut as redrawing cuts:
// written down here once more, from the textbooks.
func theoryOf(d Dist) func(x float64) float64 {
	uncut := func(x float64) float64 {
		switch d.Kind {
		case "uniform":
			return (x - d.Min) / (d.Max - d.Min)
		case "normal":
			return normalCDF((x - d.Average) / d.StdDev)
		case "lognormal":
			return normalCDF(math.Log(x/d.Median) / d.Sigma)
		case "exponential":
			return 1 - math.Exp(-max(x, 0)/d.Average)
		}
		for i := len(d.Points) - 1; i > 0; i-- {
			a, b := d.Points[i-1], d.Points[i]
			switch {
			case x >= b[1]:
				return b[0]
			case x >= a[1] && a[1] == 0:
				return a[0] + (b[0]-a[0])*x/b[1]
			case x >= a[1]:
				return a[0] + (b[0]-a[0])*math.Log(x/a[1])/math.Log(b[1]/a[1])
			}
		}
		return 0
	}
	if d.Kind == "zipf" {
		upTo := make([]float64, int(d.Max-d.Min)+2)
		for i := 1; i < len(upTo); i++ {
			upTo[i] = upTo[i-1] + math.Pow(d.Min+float64(i)-1, -d.Exponent)
		}
		return func(x float64) float64 {
			return upTo[min(max(int(math.Floor(x-d.Min))+1, 0), len(upTo)-1)] / upTo[len(upTo)-1]
		}
	}
	below, above := uncut(d.lowest()), 1.0
	if d.Kind == "quantiles" && !d.HasMin || d.Kind == "lognormal" && d.lowest() == 0 {
		below = 0
	}
	if d.HasMax {
		above = uncut(d.Max)
	}
	return func(x float64) float64 { return (uncut(x) - below) / (above - below) }
}

// quantileOf finds the least value that theory gives the probability.
func quantileOf(theory func(float64) float64, d Dist, p float64) float64 {
	low, high := d.lowest(), 1e9
	if d.HasMax {
		high = d.Max
	}
	if d.Kind == "quantiles" {
		low, high = max(low, d.Points[0][1]), min(high, d.Points[len(d.Points)-1][1])
	}
	for range 200 {
		if middle := (low + high) / 2; theory(middle) >= min(p, 1) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

func TestCDFIsTheInverseOfQuantile(t *testing.T) {
	for name, d := range dists {
		if d.Kind == "zipf" || name == "quantiles with a step" {
			continue // not continuous
		}
		for p := 0.0; p <= 1; p += 0.01 {
			if got := d.CDF(d.Quantile(p)); math.Abs(got-p) > 1e-6 {
				t.Errorf("%s: CDF(Quantile(%.2f)) = %.6f", name, p, got)
			}
		}
		if d.CDF(d.lowest()-1) != 0 || d.HasMax && d.CDF(d.Max) != 1 {
			t.Errorf("%s: CDF is not 0 below and 1 above", name)
		}
	}
	steps := dists["quantiles with a step"]
	if below, at := steps.CDF(4.999), steps.CDF(5); math.Abs(below-0.4) > 0.001 || at != 0.7 {
		t.Errorf("three tenths stand on 5, and CDF goes from %.3f to %.3f", below, at)
	}
}

// The mean against the integral of the quantiles, which is another way to it.
func TestMeanIsTheIntegralOfTheQuantiles(t *testing.T) {
	for name, d := range dists {
		const steps = 100_000
		var want float64
		for i := range steps {
			if d.Kind == "zipf" && i%40 != 20 {
				continue // its quantiles take long
			}
			v := d.Quantile((float64(i) + 0.5) / steps)
			if d.Kind == "zipf" {
				v *= 40
			}
			want += v / steps
		}
		if got := d.Mean(); math.Abs(got-want) > 0.001*want {
			t.Errorf("%s: mean %.4f, integral %.4f", name, got, want)
		}
	}
}

// Nothing piles up on the ends, as clamping would have it: a hundredth of the
// range at either end holds what the distribution says, not more.
func TestCutsDoNotPileUp(t *testing.T) {
	for _, name := range []string{"normal, cut", "lognormal, cut", "exponential, cut", "quantiles, cut"} {
		d := dists[name]
		rng := rand.New(rand.NewPCG(3, 3))
		ends := map[float64]int{}
		for range 100_000 {
			ends[d.Draw(rng)]++
		}
		if n := ends[d.Min] + ends[d.Max]; n > 2 {
			t.Errorf("%s: %d of 100000 draws are min or max themselves", name, n)
		}
	}
}

func TestCutQuantilesAreThoseOfRedrawing(t *testing.T) {
	for name, d := range map[string]Dist{
		"lognormal": {Kind: "lognormal", Median: 8000, Sigma: 0.5},
		"normal":    {Kind: "normal", Average: 3000, StdDev: 6000},
		"quantiles": {Kind: "quantiles", Points: [][2]float64{{0, 39}, {0.5, 9000}, {1, 140_500}}},
	} {
		rng := rand.New(rand.NewPCG(3, 4))
		var kept []float64
		for len(kept) < 100_000 {
			if v := d.Draw(rng); v >= 4000 && v <= 16000 {
				kept = append(kept, v)
			}
		}
		slices.Sort(kept)
		cut := within(4000, 16000, d)
		for _, p := range []float64{0.1, 0.5, 0.9} {
			if got, want := cut.Quantile(p), kept[int(p*1e5)]; math.Abs(got-want) > 0.01*want {
				t.Errorf("%s: p%g is %.0f; redrawing gives %.0f", name, 100*p, got, want)
			}
		}
	}
}

// A whole number has the share of what lies half around it, at the ends too.
func TestWholeNumbersHaveTheirShare(t *testing.T) {
	for name, d := range map[string]Dist{
		"uniform":     Range(3, 8),
		"lognormal":   within(3, 8, Dist{Kind: "lognormal", Median: 5, Sigma: 0.4}),
		"normal":      within(1, 9, Dist{Kind: "normal", Average: 5, StdDev: 2}),
		"exponential": within(1, 12, Dist{Kind: "exponential", Average: 3}),
		"zipf":        within(1, 6, Dist{Kind: "zipf", Exponent: 1}),
	} {
		const draws = 100_000
		weight := func(k float64) float64 {
			switch d.Kind {
			case "uniform":
				return 1
			case "zipf":
				return 1 / k
			case "lognormal":
				return normalCDF(math.Log((k+0.5)/5)/0.4) - normalCDF(math.Log((k-0.5)/5)/0.4)
			case "normal":
				return normalCDF((k+0.5-5)/2) - normalCDF((k-0.5-5)/2)
			}
			return math.Exp(-(k-0.5)/3) - math.Exp(-(k+0.5)/3)
		}
		var all, mean float64
		for k := d.Min; k <= d.Max; k++ {
			all += weight(k)
			mean += k * weight(k)
		}
		counts := map[int]float64{}
		rng := rand.New(rand.NewPCG(5, 6))
		for range draws {
			counts[d.DrawInt(rng)]++
		}
		for k := d.Min; k <= d.Max; k++ {
			p := weight(k) / all
			if got := counts[int(k)] / draws; math.Abs(got-p) > 5*math.Sqrt(p/draws) {
				t.Errorf("%s: %g has %.4f of the draws, want %.4f", name, k, got, p)
			}
			delete(counts, int(k))
		}
		if len(counts) > 0 {
			t.Errorf("%s: drew %v too", name, counts)
		}
		if got := d.MeanInt(); math.Abs(got-mean/all) > 1e-9 {
			t.Errorf("%s: mean %.12f, want %.12f", name, got, mean/all)
		}
	}
}

func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func TestMeanOfWholeNumbersOverLongRanges(t *testing.T) {
	for name, d := range map[string]Dist{
		"lognormal": within(1, 10_000_000, Dist{Kind: "lognormal", Median: 8000, Sigma: 1.5}),
		"quantiles": within(1, 10_000_000, Dist{Kind: "quantiles", Points: azurePrompts}),
	} {
		rng := rand.New(rand.NewPCG(7, 7))
		var sum float64
		for range 300_000 {
			sum += float64(d.DrawInt(rng))
		}
		if got, want := d.MeanInt(), sum/300_000; math.Abs(got-want) > 0.015*want {
			t.Errorf("%s: mean %.1f, of draws %.1f", name, got, want)
		}
	}
}

func TestSumsOfPowers(t *testing.T) {
	for _, row := range []struct{ a, b, s float64 }{{1, 10, 1}, {1, 100_000, 1}, {1, 50_000, 0.3}, {7, 30_000, 2.5}, {1, 20_000, -0.7}, {40, 41, 1}, {1, 33, 1.0000001}} {
		var want float64
		for k := row.a; k <= row.b; k++ {
			want += math.Pow(k, -row.s)
		}
		if got := powers(row.a, row.b, row.s); math.Abs(got-want) > 1e-10*want {
			t.Errorf("powers%v = %.15g, want %.15g", row, got, want)
		}
	}
}

func TestConstants(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for name, row := range map[string]struct {
		d    Dist
		want float64
	}{
		"the zero Dist":               {Dist{}, 0},
		"a constant":                  {Constant(7), 7},
		"a range of one":              {Range(5, 5), 5},
		"a lognormal without a range": {within(9, 9, Dist{Kind: "lognormal", Median: 9}), 9},
	} {
		d := row.d
		got := []float64{d.Draw(rng), float64(d.DrawInt(rng)), d.Mean(), d.MeanInt(), d.Quantile(0.3), float64(d.QuantileInt(0.9))}
		if !d.IsConstant() || slices.ContainsFunc(got, func(v float64) bool { return v != row.want }) {
			t.Errorf("%s gives %v", name, got)
		}
		if d.CDF(row.want-0.1) != 0 || d.CDF(row.want) != 1 {
			t.Errorf("%s: its CDF is not a step", name)
		}
	}
}

func BenchmarkDrawInt(b *testing.B) {
	for _, name := range []string{"uniform", "lognormal, cut", "quantiles", "zipf, long and flat"} {
		b.Run(fmt.Sprintf("%.9s", name), func(b *testing.B) {
			d, rng := dists[name], rand.New(rand.NewPCG(1, 1))
			b.ReportAllocs()
			for b.Loop() {
				d.DrawInt(rng)
			}
		})
	}
}
