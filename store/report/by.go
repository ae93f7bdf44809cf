package report

import (
	"fmt"
	"slices"
	"strings"

	"weir/store/call"
)

// GroupKeys are the names that Options.By accepts; "label:KEY" as well.
var GroupKeys = []string{"scenario", "model", "api", "key", "session", "purpose", "label", "upstream", "client", "door", "outcome", "run"}

// keys read the group of a call.
type keys struct {
	names []string
	read  []func(pair) string
}

// of gives the values of the call's group, one for each key.
func (k keys) of(p pair) []string {
	values := make([]string, len(k.read))
	for i, read := range k.read {
		values[i] = read(p)
	}
	return values
}

// groupKeys understands the names of group keys; none of them is scenario.
func groupKeys(names []string) (keys, error) {
	if len(names) == 0 {
		names = []string{"scenario"}
	}
	k := keys{names: slices.Clone(names)}
	for _, name := range names {
		read := groupKey(name)
		if read == nil {
			return keys{}, fmt.Errorf("report by %q: no such key; use %s or label:KEY", name, strings.Join(GroupKeys, ", "))
		}
		k.read = append(k.read, read)
	}
	return k, nil
}

// CheckGroupKeys says what is wrong with names before anything is read.
func CheckGroupKeys(names []string) error {
	_, err := groupKeys(names)
	return err
}

func groupKey(name string) func(pair) string {
	switch name {
	case "scenario":
		return either(func(c *call.Call) string { return c.Scenario })
	case "model":
		return either(func(c *call.Call) string { return c.Request.Model })
	case "api":
		return either(func(c *call.Call) string { return string(c.API) })
	case "key":
		return either(func(c *call.Call) string { return c.KeyFingerprint })
	case "session":
		return either(func(c *call.Call) string { return c.Session })
	case "purpose":
		return either(func(c *call.Call) string { return c.Purpose })
	case "door":
		return either(func(c *call.Call) string { return c.Door })
	case "upstream":
		return either(func(c *call.Call) string { return c.Upstream })
	case "client":
		return either(func(c *call.Call) string { return c.ClientName })
	case "run":
		return either(func(c *call.Call) string { return c.Run })
	case "outcome":
		return func(p pair) string { return string(p.outcome()) }
	case "label":
		return either(allLabels)
	}
	if key, ok := strings.CutPrefix(name, "label:"); ok && key != "" {
		return either(func(c *call.Call) string { return c.Labels[key] })
	}
	return nil
}

// either reads the proxy's view, and the client's where the proxy's is silent.
func either(read func(*call.Call) string) func(pair) string {
	return func(p pair) string {
		v := read(p.lead())
		if v == "" && p.client != nil {
			v = read(p.client)
		}
		return v
	}
}

// allLabels writes a call's labels as one value, "k=v k=v" by key; a label
// without a value is its key.
func allLabels(c *call.Call) string {
	var all []string
	for k, v := range c.Labels {
		if v != "" {
			k += "=" + v
		}
		all = append(all, k)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
