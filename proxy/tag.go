package proxy

// untagged is the scenario of requests that nothing and nobody names, and that
// have no class either.
const untagged = "untagged"

// Tag gives the requests that nothing names another scenario, from the next one
// on; empty is "untagged" again. It gives the one before, and may be called
// while the proxy serves.
func (p *Proxy) Tag(scenario string) (old string) {
	name := ScenarioName(scenario)
	if name == "" {
		name = untagged
	}
	if before := p.tag.Swap(&name); before != nil {
		return *before
	}
	return p.first()
}

// Tagged is the scenario of requests that nothing names; never empty.
func (p *Proxy) Tagged() string {
	if now := p.tag.Load(); now != nil {
		return *now
	}
	return p.first()
}

// first is the scenario that the proxy was made with.
func (p *Proxy) first() string {
	if name := ScenarioName(p.Scenario); name != "" {
		return name
	}
	return untagged
}
