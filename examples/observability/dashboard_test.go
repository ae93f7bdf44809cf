package observability

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// A panel that shows two kinds of figures gives each its unit: a stall a second
// is no second.
func TestFiguresOfPanelsHaveTheirUnits(t *testing.T) {
	b, err := os.ReadFile("grafana/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title       string
			Targets     []struct{ RefID, Expr string }
			FieldConfig struct {
				Defaults  struct{ Unit string }
				Overrides []struct {
					Matcher    struct{ ID, Options string }
					Properties []struct {
						ID    string
						Value string
					}
				}
			}
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			unit := p.FieldConfig.Defaults.Unit
			for _, o := range p.FieldConfig.Overrides {
				if o.Matcher.ID == "byFrameRefID" && o.Matcher.Options == target.RefID {
					unit = o.Properties[0].Value
				}
			}
			seconds := strings.Contains(target.Expr, "histogram_quantile")
			if seconds != (unit == "s") || unit == "" {
				t.Errorf("%s %s has the unit %q", p.Title, target.RefID, unit)
			}
			seen++
		}
	}
	if seen < 15 {
		t.Errorf("only %d queries were found", seen)
	}
}
