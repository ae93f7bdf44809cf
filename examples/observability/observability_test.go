// Package observability tests the example: a real Prometheus scrapes a weir
// under load, and everything that the dashboard and the rules ask it for is
// there.
package observability

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// patience bounds what must happen at some time.
const patience = 90 * time.Second

// needs skips a test where Debian's package prometheus is not installed.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed: apt-get install prometheus", p)
		}
	}
}

func promtool(t *testing.T, in io.Reader, args ...string) {
	t.Helper()
	c := exec.Command("promtool", args...)
	c.Stdin = in
	if out, err := c.CombinedOutput(); err != nil || bytes.Contains(out, []byte("FAILED")) {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestPromtoolTakesTheRules(t *testing.T) {
	needs(t, "promtool")
	promtool(t, nil, "check", "config", "prometheus.yml")
	promtool(t, nil, "check", "rules", "--lint=all", "rules.yml", "alerts.yml")
	promtool(t, nil, "test", "rules", "rules_test.yml")
}

// stand is a simulated endpoint, a weir before it, and a Prometheus.
type stand struct {
	t             *testing.T
	dir, weir, db string
	proxy         string // base URL
	admin         string // host and port
	prometheus    string // base URL
	env           []string
}

// newStand starts all of it, beside the other tests: it is mostly the answers and
// Prometheus's intervals that take long. env are variables of all programs, args
// are of the proxy, features of the Prometheus.
func newStand(t *testing.T, env []string, features string, args ...string) *stand {
	needs(t, "prometheus", "promtool")
	t.Parallel()
	s := &stand{t: t, dir: t.TempDir(), env: env}
	s.weir, s.db = filepath.Join(s.dir, "weir"), filepath.Join(s.dir, "weir.db")
	if out, err := exec.Command("go", "build", "-o", s.weir, "weir/cmd/weir").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	sim, prometheus := freeAddress(t), freeAddress(t)
	proxy := freeAddress(t)
	s.admin, s.proxy, s.prometheus = freeAddress(t), "http://"+proxy, "http://"+prometheus
	s.start(s.weir, "sim", "--listen", sim, "--seed", "1")
	s.start(s.weir, append([]string{"proxy", "--upstream", "sim=http://" + sim, "--listen", proxy, "--admin", s.admin, "--db", s.db}, args...)...)
	config, err := os.ReadFile("prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("127.0.0.1:9484", s.admin, "interval: 5s", "interval: 1s").Replace(string(config))
	if err := os.WriteFile(filepath.Join(s.dir, "prometheus.yml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"rules.yml", "alerts.yml"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, file), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.start("prometheus", "--config.file="+filepath.Join(s.dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(s.dir, "tsdb"),
		"--web.listen-address="+prometheus, "--enable-feature="+features)
	s.until("weir is scraped", func() error {
		return s.returns(`up{job="weir"} == 1`)
	})
	return s
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start runs a program until the test ends.
func (s *stand) start(program string, args ...string) {
	s.t.Helper()
	c := exec.Command(program, args...)
	c.Env = append(append(os.Environ(), s.env...), "HOME="+s.dir, "XDG_DATA_HOME="+s.dir, "XDG_RUNTIME_DIR=")
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
		if s.t.Failed() {
			s.t.Logf("%s %s said:\n%s", filepath.Base(program), args[0], &said)
		}
	})
}

// load plays the quickstart's load model through the proxy.
func (s *stand) load(length string) {
	s.t.Helper()
	c := exec.Command(s.weir, "load", "../quickstart/load_model.json", "--target", s.proxy, "--for", length, "--seed", "1", "--no-preflight",
		"--db", filepath.Join(s.dir, "load.db"))
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) { // 3: this machine is busy
		s.t.Fatalf("weir load: %v\n%s", err, out)
	}
}

// until waits for something to come true.
func (s *stand) until(what string, try func() error) {
	s.t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	s.t.Fatalf("%s: not within %s: %v", what, patience, err)
}

// ask gives the data of an answer of Prometheus's API.
func (s *stand) ask(path string, query url.Values, data any) error {
	resp, err := http.Get(s.prometheus + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Error string          `json:"error"`
		Data  json.RawMessage `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return json.Unmarshal(answer.Data, data)
}

// returns says why a query gives no number.
func (s *stand) returns(query string) error {
	var data struct {
		Result []struct {
			Value [2]any `json:"value"`
		} `json:"result"`
	}
	if err := s.ask("/api/v1/query", url.Values{"query": {query}}, &data); err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	for _, r := range data.Result {
		if r.Value[1] != "NaN" {
			return nil
		}
	}
	return fmt.Errorf("%s: no number in %d series", query, len(data.Result))
}

// dashboardQueries are all that the dashboard asks.
func dashboardQueries(t *testing.T) map[string]string {
	b, err := os.ReadFile("grafana/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{}
	fill := strings.NewReplacer("$__rate_interval", "1m", "$scenario", ".*", "$side", "proxy")
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			queries[p.Title+" "+target.RefID] = fill.Replace(target.Expr)
		}
	}
	return queries
}

// threshold is what an alert compares with: without it, it gives what it watches.
var threshold = regexp.MustCompile(`\s[<>]\s[\d.]+`)

// ruleQueries are what the rules of a file compute, with the alerts' thresholds
// left out.
func ruleQueries(t *testing.T, file string) map[string]string {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Groups []struct {
			Rules []struct{ Record, Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{}
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			queries[r.Record+r.Alert] = threshold.ReplaceAllString(r.Expr, "")
			if r.Record != "" {
				queries[r.Record+", recorded"] = r.Record
			}
		}
	}
	return queries
}

func TestEveryQueryReturnsDataAfterARun(t *testing.T) {
	s := newStand(t, []string{"WEIR_FAULT=529:10%"}, "exemplar-storage", "--limit", "scenario=short_chat concurrency=64")
	s.load("10s")
	all := []map[string]string{dashboardQueries(t), ruleQueries(t, "rules.yml"), ruleQueries(t, "alerts.yml")}
	for _, queries := range all {
		if len(queries) < 6 {
			t.Fatalf("only %d queries were found: %v", len(queries), queries)
		}
		for name, query := range queries {
			s.until(name, func() error { return s.returns(query) })
		}
	}
	resp, err := http.Get("http://" + s.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	promtool(t, resp.Body, "check", "metrics")

	// An exemplar leads to a call in the database.
	var exemplars []struct {
		Exemplars []struct {
			Labels map[string]string `json:"labels"`
		} `json:"exemplars"`
	}
	s.until("exemplars", func() error {
		now := time.Now()
		query := url.Values{"query": {"weir_ttft_felt_seconds_bucket"}, "start": {now.Add(-time.Hour).Format(time.RFC3339)}, "end": {now.Format(time.RFC3339)}}
		if err := s.ask("/api/v1/query_exemplars", query, &exemplars); err != nil {
			return err
		}
		if len(exemplars) == 0 || len(exemplars[0].Exemplars) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	labels := exemplars[0].Exemplars[0].Labels
	out, err := exec.Command(s.weir, "calls", labels["span_id"], "--db", s.db).CombinedOutput()
	if err != nil || labels["trace_id"] == "" || !bytes.Contains(out, []byte("call "+labels["span_id"])) {
		t.Errorf("the exemplar %v is no call: %v\n%s", labels, err, out)
	}
}

func TestNativeHistogramsWhereAskedFor(t *testing.T) {
	s := newStand(t, nil, "native-histograms", "--native-histograms")
	s.load("3s")
	s.until("a native histogram", func() error {
		return s.returns(`histogram_quantile(0.95, sum by (weir_scenario) (rate(weir_ttft_felt_seconds[1m])))`)
	})
}

// Grafana is none of the programs that these tests start.
func TestDataSourcesAreYAML(t *testing.T) {
	b, err := os.ReadFile("grafana/datasources.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var sources map[string]any
	if err := yaml.Unmarshal(b, &sources); err != nil || len(sources) == 0 {
		t.Error(err)
	}
}
